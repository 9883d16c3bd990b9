"""Keyword categories of the message and the assistant's last turn: their union, within what is permitted.

Nothing matched means nothing sent; a role without one of the tools means that tool stays out, never that all go.
"""

from cortex.selection.baselines import inara
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput

HOMES = inara.homes()


def keywords(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the tools of the activated categories, in registry order, and the block's estimate."""
    last_answer = given.past[-1].assistant if given.past else ""
    met = inara.activated(given.message, last_answer)
    chances: dict[str, Vote] = {}
    dropped: dict[str, Vote] = {}
    for entry in draft.permitted:
        if entry.is_meta:
            continue
        words = [met[home] for home in HOMES.get(entry.name, ()) if home in met]
        if words:
            chances[entry.name] = Vote(stage="keywords", p=1.0, why=f'the keyword "{words[0]}" was said')
        else:
            dropped[entry.name] = Vote(stage="keywords", p=0.0, why=_why_not(entry.name))
    chosen = tuple(entry for entry in draft.permitted if entry.name in chances)
    key = inara.BlockKey(
        version=given.snapshot.version,
        role=given.role.name,
        tools=tuple(sorted(chances)),
        risk=("admin" if given.is_admin else "member", given.channel),
        entries=chosen,
    )
    return marked(
        draft,
        chances=chances,
        dropped=dropped,
        threshold=1.0,
        wanted=tuple(entry.name for entry in chosen),
        labels={"estimate": f"{inara.block(key).tokens} tokens of tools"},
    )


def _why_not(name: str) -> str:
    homes = HOMES.get(name, ())
    return f"no keyword of {' or '.join(homes)} was said" if homes else "no category of keywords holds it"
