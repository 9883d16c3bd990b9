"""What a message wants that cannot be used here: the very plan that chooses tools, as if it could.

Grants and sends nothing; the gate has the last word on whose wish it is. Asked where words of the person are new.
"""

from collections.abc import Collection

from msgspec.structs import replace

from cortex.selection.index.index import index_of
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, PlannerMemory
from cortex.selection.votes import evidence
from cortex.selection.words import text

LIKELY, PERHAPS = 0.6, 0.3  # a tool is sent at less, for it does no harm where nobody calls it; a note is read
SERVES = 0.75  # of its chance: what is there and comes that near serves as well
OF_THE_MODEL = ("learned", "vectors")  # what a person or this server says counts in full, as in `stages/fuse.py`


def wanted_unset(given: PlanInput, unset: Collection[str], outside: tuple[str, ...] = ()) -> tuple[str, bool]:
    """The tool of `unset` that would have been sent and is perhaps meant, "" for none; and whether it likely is.

    outside: those of them that the role or the account is not granted.
    """
    if given.mode == "chat" or not unset or (given.round > 1 and not given.is_heard):
        return "", False
    ready = tuple(dict.fromkeys((*given.ready, *unset)))
    never = tuple(name for name in given.never if name not in unset)
    role = replace(given.role, tools=(*given.role.tools, *outside))
    is_admin = given.is_admin or bool(outside)
    as_if = replace(given, ready=ready, never=never, role=role, is_admin=is_admin, memory=PlannerMemory(), mode="auto")
    made = plan(as_if)
    sent = {item.name: item.stage for item in made.sent if item.stage != "form"}  # not what goes beside it, short
    lacking = [(name, p) for name, p in made.hints if name in unset and name in sent]
    other = max((p for name, p in made.hints if name not in unset), default=0.0)
    index, said = index_of(given.snapshot), frozenset(text.terms(given.message))
    near = {name: p for name, p in lacking if p >= SERVES * lacking[0][1]}
    # Of several that serve, the one that the person's words name: who may not restart Cortex wants no shell.
    called = {name: len(said & index.name_terms(name)) for name in near}
    name = max(near, key=lambda each: called[each], default="")
    if name in outside and not called[name] and len({index.entries[each].category for each in near}) > 1:
        return "", False
    p = meant = near.get(name, 0.0)
    if sent.get(name) in OF_THE_MODEL:  # a wish at all, and one that words do not answer
        learned = evidence.learned(index, given.message)
        meant *= learned.wish * learned.work
    is_likely = meant >= LIKELY and other < SERVES * p
    is_perhaps = meant >= PERHAPS and other < p and name not in outside
    return name if is_likely or is_perhaps else "", is_likely
