"""Plans a stored round again under another recipe: the recorded input, the registry of today, no call and no effect.

`recorded` writes down what a plan was made from; what the transcript holds anyway (message, earlier turns) is read
from there, and a digest tells whether the input came back to the byte.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import portable
from cortex.base.errors import NotFound
from cortex.base.ids import digest
from cortex.base.record import defaults
from cortex.selection.pipeline import plan
from cortex.selection.plan.receipt import receipt
from cortex.selection.recipes import RECIPES
from cortex.selection.types import NO_TOOLS, PlanInput, PlannerMemory
from cortex.services.runtime import Runtime
from cortex.services.tools.plans import PAST_TURNS, PlannedRound, as_one, past_turns, with_so_far
from cortex.services.tools.tools import ToolsService
from cortex.storage.calls import CallsRepository
from cortex.storage.messages import MessagesRepository, by_turn
from cortex.storage.plans import PlanRow, PlansRepository, TextsRepository
from cortex.storage.turns import TurnsRepository

FIRST_LATER = {PlanInput: "facts", PlannerMemory: "never"}  # this field, and all behind it, older plans lack
ELSEWHERE = ("snapshot", "message", "past", "ready", "turn")


class ToolDifference(Struct, frozen=True, kw_only=True):
    """A tool that one of the two plans sends and the other does not, with the reason of the one that does.

    Or one that both send: then `form` is what was sent and what would be.
    """

    name: str
    tokens: int
    reason: str
    form: str = ""


class Replay(Struct, frozen=True, kw_only=True):
    """The tools that the other recipe would have sent, beside what was.

    `is_same_registry`: no tool changed since. `is_exact`: the stored input was rebuilt to the byte.
    """

    recipe: str
    before: dict[str, Any]
    after: dict[str, Any]
    joined: tuple[ToolDifference, ...]
    left: tuple[ToolDifference, ...]
    reshaped: tuple[ToolDifference, ...]
    is_same_registry: bool
    is_exact: bool


class Replays(Struct, frozen=True, kw_only=True):
    """Replays the rounds of one user's turns."""

    runtime: Runtime
    tools: ToolsService

    @property
    def recipes(self) -> tuple[str, ...]:
        """Return what a round can be planned under."""
        return tuple(RECIPES)

    async def replay(self, user_id: str, turn_id: str, round: int, recipe: str) -> Replay:
        """The round under this recipe. NotFound for a round without a stored input; UserError for the recipe."""
        async with self.runtime.db.read_transaction(user_id) as repository:
            turn = await repository(TurnsRepository).get(turn_id)
            kept = next((one for one in await repository(PlansRepository).of_turn(turn_id) if one.round == round), None)
            if kept is None or not kept.given:
                raise NotFound("What this round's plan was made from was not kept.")
            stored = await repository(MessagesRepository).of_conversation(turn.conversation_id, turn.ordinal)
            texts = await repository(TextsRepository).get([kept.given["ready"]])
            taken = await repository(TurnsRepository).taken(turn, round)
            calls = await repository(CallsRepository).of_turn(turn_id)
        past = past_turns([messages for _, messages in by_turn(stored)[-PAST_TURNS:]])
        if taken:
            past = with_so_far(past, turn.text, [call.name for call in calls if call.round < round])
        ready = json.loads(texts.get(kept.given["ready"], "[]"))
        message = as_one([row.text for row in taken]) or turn.text
        given = rebuilt(kept.given, turn_id, message, portable.plain(past), ready)
        snapshot = await self.tools.snapshot()
        asked = replace(given, snapshot=snapshot, recipe=recipe)
        await self.runtime.db.end_view()
        made = await asyncio.to_thread(plan, asked)
        return _difference(recipe, kept, receipt(made), snapshot.version, fingerprint(given))


def recorded(planned: PlannedRound) -> tuple[dict[str, Any], Sequence[str]]:
    """Return what is stored of a plan's input, and the texts that it and the request name by their digest."""
    given = planned.given
    whole = _plain(given)
    kept = {name: value for name, value in whole.items() if name not in ELSEWHERE}
    texts = {"ready": json.dumps(given.ready), "system": planned.round.system, "tools": planned.tools}
    named = {name: digest(text) for name, text in texts.items()}
    told = {"version": given.snapshot.version, "digest": digest(portable.canonical(whole))}
    return {**kept, **named, **told}, tuple(texts.values())


def rebuilt(kept: dict[str, Any], turn_id: str, message: str, past: Any, ready: Sequence[str]) -> PlanInput:
    """The input that `recorded` wrote, without its snapshot."""
    data = {**kept, "snapshot": portable.plain(NO_TOOLS), "message": message, "turn": turn_id}
    return portable.read(PlanInput, {**data, "past": past, "ready": ready})


def fingerprint(given: PlanInput) -> str:
    """A digest of the whole input but the registry, which has a version."""
    return digest(portable.canonical(_plain(given)))


def _plain(given: PlanInput) -> dict[str, Any]:
    """The input as it is stored. What was added later is in it only where it says something: old digests stay."""
    return {**_written(replace(given, snapshot=NO_TOOLS)), "memory": _written(given.memory)}


def _written(value: PlanInput | PlannerMemory) -> dict[str, Any]:
    data: dict[str, Any] = portable.plain(value)
    later = list(data).index(FIRST_LATER[type(value)])
    usual = defaults(type(value))
    silent = {name for name in list(data)[later:] if name in usual and getattr(value, name) == usual[name]}
    return {name: said for name, said in data.items() if name not in silent}


def _difference(recipe: str, kept: PlanRow, after: dict[str, Any], version: str, found: str) -> Replay:
    sent = {one["name"]: one for one in kept.receipt["sent"]}
    would = {one["name"]: one for one in after["sent"]}
    return Replay(
        recipe=recipe,
        before=kept.receipt,
        after=after,
        joined=tuple(_moved(one) for name, one in would.items() if name not in sent),
        left=tuple(_moved(one) for name, one in sent.items() if name not in would),
        reshaped=tuple(
            _moved(one, f"{sent[name]['form']} → {one['form']}")
            for name, one in would.items()
            if name in sent and sent[name]["form"] != one["form"]
        ),
        is_same_registry=version == kept.given["version"],
        is_exact=found == kept.given["digest"],
    )


def _moved(one: dict[str, Any], form: str = "") -> ToolDifference:
    return ToolDifference(name=one["name"], tokens=one["tokens"], reason=one["reason"], form=form)
