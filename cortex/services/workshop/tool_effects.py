"""What other words would change, before they are saved: messages planned with the words as they are and as typed.

Tries the category's own utterances, what the admin typed, and what people say elsewhere with a changed phrase, or a
changed word of a description, in it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.role import Role
from cortex.base.user import User
from cortex.selection.discover import MOST, rank
from cortex.selection.pipeline import plan
from cortex.selection.types import Domain, Example, Snapshot, ToolPlan
from cortex.selection.votes.semantic_votes import in_time
from cortex.selection.words import text
from cortex.selection.words.talk import common_terms
from cortex.services.tools.edits import Edits, edited, with_encoder
from cortex.services.tools.plans import PlanRequest, role_view
from cortex.services.tools.tools import PlanGround
from cortex.services.tools.words import Rival, rivals, words_of
from cortex.services.workshop.tool_trials import ToolTrials
from cortex.storage.tool_settings import ToolWordRow

OWN_MOST = 40
ELSEWHERE_MOST = 40
TYPED_MOST = 50
CHANGES_SHOWN = 20
SEARCHED_MOST = 20
FIXED_TOKENS = 300
EVERYTHING = Role(name="admin", prompt="", tools=("all",))
Source = Literal["typed", "here", "elsewhere"]


class PlanChange(Struct, frozen=True, kw_only=True):
    """A message whose tools change. `source`: typed by the admin, an utterance of this category, or of another."""

    text: str
    source: Source
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    tokens_before: int
    tokens_after: int


class Side(Struct, frozen=True, kw_only=True):
    """All messages together: tools and tokens a message, and how many of those with known needs have them met."""

    tools: float
    tokens: float
    met: int


class Effect(Struct, frozen=True, kw_only=True):
    """Before and after. `wanting`: messages with known needs; `changes`: the first of those whose tools change."""

    messages: int
    wanting: int
    before: Side
    after: Side
    changed: int
    changes: tuple[PlanChange, ...]
    rivals: tuple[Rival, ...]


class RankChange(Struct, frozen=True, kw_only=True):
    """A wording with the tool's place in what `tools_discover` finds; None = not among it."""

    text: str
    before: int | None
    after: int | None


class DescriptionEffect(Struct, frozen=True, kw_only=True):
    """A tool under other words: tokens before and after in full and in short, what changes in plans and in the search.

    `searched`: how many wordings were searched with; `found`: those of them that found the tool, before and after;
    `moved`: the first of those whose place changed.
    """

    full: tuple[int, int]
    stub: tuple[int, int]
    effect: Effect
    searched: int
    found: tuple[int, int]
    moved: tuple[RankChange, ...]


class _Said(Struct, frozen=True, kw_only=True):
    text: str
    source: Source
    wanted: tuple[str, ...] = ()


class ToolEffects(Struct, frozen=True, kw_only=True):
    """Compares plans; stores nothing."""

    trials: ToolTrials

    async def preview(
        self, user: User, category: str, words: Sequence[ToolWordRow], typed: Sequence[str], recipe: str
    ) -> Effect:
        """Tell what these words in place of the category's own would change for an admin who may use everything."""
        ground = await self.trials.tools.ground()
        other = {name: each for name, each in ground.settings.edits.words.items() if name != category}
        edits = replace(ground.settings.edits, words={**other, **words_of(words)})
        return await self._of(user, ground, category, edits, typed, recipe)

    async def of_description(
        self, user: User, name: str, description: str, typed: Sequence[str], recipe: str
    ) -> DescriptionEffect:
        """Return what this description in place of the tool's present one would cost and change, for the same admin."""
        tool = self.trials.runtime.registry.tools[name]
        ground = await self.trials.tools.ground()
        others = {key: words for key, words in ground.settings.edits.descriptions.items() if key != name}
        edits = replace(ground.settings.edits, descriptions={**others, name: description})
        effect = await self._of(user, ground, tool.category, edits, typed, recipe)
        after = await asyncio.to_thread(edited, ground.shipped, edits)
        return await asyncio.to_thread(_described, name, ground.snapshot, after, effect, typed)

    async def _of(
        self, user: User, ground: PlanGround, category: str, edits: Edits, typed: Sequence[str], recipe: str
    ) -> Effect:
        asked = await self.trials.asked(user, "orchestrator", "admin", "")
        asked = replace(asked, role=EVERYTHING).with_given(role=role_view(EVERYTHING), recipe=recipe)
        own = [tool.name for tool in self.trials.runtime.registry.categories[category].tools]
        missing = [name for name in own if name not in ground.ready and name not in ground.settings.off]
        return await asyncio.to_thread(_effect, asked, ground, edits, category, (*ground.ready, *missing), typed)


def _effect(
    asked: PlanRequest, ground: PlanGround, edits: Edits, category: str, ready: tuple[str, ...], typed: Sequence[str]
) -> Effect:
    """Off the event loop: both plans of every message."""
    before = ground.snapshot
    after = with_encoder(edited(ground.shipped, edits), before.encoder)
    said = messages(before, after, category, typed)
    pairs = [_pair(asked, before, after, ready, one.text) for one in said]
    found = [
        change for one, (old, new) in zip(said, pairs, strict=True) if (change := _change(one, old, new)) is not None
    ]
    return Effect(
        messages=len(said),
        wanting=sum(bool(one.wanted) for one in said),
        before=_side(said, [old for old, _ in pairs]),
        after=_side(said, [new for _, new in pairs]),
        changed=len(found),
        changes=tuple(found[:CHANGES_SHOWN]),
        rivals=rivals(after.domains, category),
    )


def _described(name: str, before: Snapshot, after: Snapshot, effect: Effect, typed: Sequence[str]) -> DescriptionEffect:
    """Off the event loop: the costs, and the search with what was typed and with the tool's own examples."""
    old, new = (next(entry for entry in one.entries if entry.name == name) for one in (before, after))
    own = [each for each in _domain(before, new.category).examples if name in each.tools]
    said = dict.fromkeys((*typed[:TYPED_MOST], *(each.text for each in _spread(own, SEARCHED_MOST))))
    places = [(one, _place(before, one, name), _place(after, one, name)) for one in said]
    moved = [RankChange(text=one, before=was, after=now) for one, was, now in places if was != now]
    return DescriptionEffect(
        full=(old.tokens_full, new.tokens_full),
        stub=(old.tokens_stub, new.tokens_stub),
        effect=effect,
        searched=len(places),
        found=(sum(was is not None for _, was, _ in places), sum(now is not None for *_, now in places)),
        moved=tuple(moved[:CHANGES_SHOWN]),
    )


def _place(snapshot: Snapshot, said: str, name: str) -> int | None:
    """The tool's place, from 1, among what a search with these words finds."""
    hits = rank(said, snapshot, [entry.name for entry in snapshot.entries], MOST)
    return next((at for at, hit in enumerate(hits, start=1) if hit.name == name), None)


def messages(before: Snapshot, after: Snapshot, category: str, typed: Sequence[str]) -> tuple[_Said, ...]:
    """List what is tried, each wording once: typed, then the category's own, then others that hold a changed phrase."""
    old, new = _domain(before, category), _domain(after, category)
    known = {text.normal(each.text): each.tools for each in (*old.examples, *new.examples)}
    changed = _changed((each.text for each in old.triggers), (each.text for each in new.triggers))
    changed += _changed(_description_words(before, category), _description_words(after, category))
    fresh = {*new.examples} ^ {*old.examples}
    own = [*sorted(fresh, key=lambda each: each.text), *_spread([*new.examples], OWN_MOST)]
    others = [
        *(each for domain in before.domains if domain.name != category for each in domain.examples),
        *before.several,
    ]
    talk = [replace(each, tools=()) for each in before.none]
    near = [each for each in (*others, *talk) if _holds_any(each.text, changed)]
    rows = [
        *(_Said(text=said, source="typed", wanted=known.get(text.normal(said), ())) for said in typed[:TYPED_MOST]),
        *(_Said(text=each.text, source="here", wanted=each.tools) for each in own),
        *(_Said(text=each.text, source="elsewhere", wanted=each.tools) for each in _spread(near, ELSEWHERE_MOST)),
    ]
    once: dict[str, _Said] = {}
    for row in rows:
        once.setdefault(text.normal(row.text), row)
    return tuple(once.values())


def _pair(
    asked: PlanRequest, before: Snapshot, after: Snapshot, ready: tuple[str, ...], said: str
) -> tuple[ToolPlan, ToolPlan]:
    """Both plans, with the sentence model or both without, so that what it misses is no effect of the words."""
    asked = asked.with_given(message=said)
    old = in_time(asked.over(before, ready, FIXED_TOKENS))
    new = asked.with_given(encoder_skipped=old.encoder_skipped).over(after, ready, FIXED_TOKENS)
    return plan(old), plan(new)


def _names(made: ToolPlan) -> tuple[str, ...]:
    return tuple(item.name for item in made.sent if item.name in made.reachable)


def _change(said: _Said, old: ToolPlan, new: ToolPlan) -> PlanChange | None:
    before, after = _names(old), _names(new)
    if set(before) == set(after):
        return None
    return PlanChange(
        text=said.text,
        source=said.source,
        plus=tuple(name for name in after if name not in before),
        minus=tuple(name for name in before if name not in after),
        tokens_before=_tokens(old),
        tokens_after=_tokens(new),
    )


def _side(said: Sequence[_Said], plans: Sequence[ToolPlan]) -> Side:
    count = len(plans) or 1
    return Side(
        tools=sum(len(_names(made)) for made in plans) / count,
        tokens=sum(_tokens(made) for made in plans) / count,
        met=sum(bool(one.wanted) and {*one.wanted} <= {*_names(made)} for one, made in zip(said, plans, strict=True)),
    )


def _tokens(made: ToolPlan) -> int:
    return made.costs.tools + made.costs.catalog + made.costs.notes


def _domain(snapshot: Snapshot, category: str) -> Domain:
    return next(domain for domain in snapshot.domains if domain.name == category)


def _description_words(snapshot: Snapshot, category: str) -> set[str]:
    """The words of the category's descriptions that mean something."""
    told = [entry.full.description for entry in snapshot.entries if entry.category == category]
    return {word for one in told for word in text.words(one) if word not in common_terms()}


def _changed(old: Iterable[str], new: Iterable[str]) -> list[tuple[str, ...]]:
    return sorted({text.words(each) for each in old} ^ {text.words(each) for each in new})


def _holds_any(said: str, phrases: Sequence[tuple[str, ...]]) -> bool:
    if not phrases:
        return False
    words = text.words(said)
    return any(words[at : at + len(each)] == each for each in phrases for at in range(len(words) - len(each) + 1))


def _spread(examples: Sequence[Example], most: int) -> list[Example]:
    """At most so many, evenly from the whole list."""
    if len(examples) <= most:
        return [*examples]
    return [examples[at * len(examples) // most] for at in range(most)]
