"""One planned request: the plan, the words around it, and what all of it costs. The code path of every real turn.

`services/tools/tools.py` gathers the inputs and calls this; nothing here reads a table or a file.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.agent.arguments import behind_bridge
from cortex.agent.prompt import is_note, system_prompt, tail
from cortex.base import portable, tokens
from cortex.base.fact import FactFit, KnownFact
from cortex.base.ids import digest
from cortex.base.lacking import PERHAPS, note_on
from cortex.base.messages import Message, ToolResult, ToolSchema
from cortex.base.role import Role
from cortex.base.turn import Need, RoundPlan
from cortex.base.user import User
from cortex.ports.integrations import Setup
from cortex.selection.index import recall
from cortex.selection.index.index import index_of
from cortex.selection.index.skill_search import listing
from cortex.selection.pipeline import plan
from cortex.selection.plan.receipt import receipt
from cortex.selection.stages.missing import LIKELIER
from cortex.selection.types import PastTurn, PlanInput, RoleView, Snapshot, ToolPlan
from cortex.selection.unset import wanted_unset
from cortex.selection.votes.semantic_votes import in_time
from cortex.selection.ways.punch import cut
from cortex.services.roles.roles import talk_prompt

PAST_TURNS = 4
PLANNED_FOR = "planned for"  # label of the receipts that read first what was sent while the turn ran
TAINTED_CHARACTERS = 2_000
TOOLS_NAMED = 20  # of a system that cannot be used


class PlanRequest(Struct, frozen=True, kw_only=True):
    """The ground on which a round is planned. `given`: what the stages read, before it is known which tools there are.

    `facts`: what is remembered, to go along within `facts_tokens` where it fits; `carried`: what earlier messages of
    the conversation carry of it. `no_tools`: the model that is set to take none, and the page of it for who may change
    that; {} where it takes them. `left_out`: tools that the model's server refuses.
    """

    user: User
    role: Role
    given: PlanInput
    facts: tuple[KnownFact, ...] = ()
    facts_tokens: int = 0
    carried: str = ""
    no_tools: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def over(self, snapshot: Snapshot, ready: Sequence[str], fixed_tokens: int) -> PlanInput:
        """The planner's input over these tools, recorded as it is: what a stored plan is replayed from."""
        never = tuple(sorted({*self.given.never, *self.left_out}))
        return replace(self.given, snapshot=snapshot, ready=tuple(ready), never=never, fixed_tokens=fixed_tokens)

    def with_given(self, **told: Any) -> "PlanRequest":
        """The same with these fields of `given`; TypeError for one that there is not. Any: each has its own type."""
        return replace(self, given=replace(self.given, **told))


def opening(user: User, role: Role, message: str, now: datetime) -> PlanRequest:
    """The request of a message that begins a conversation: by the role's recipe, nothing said or sent before."""
    given = PlanInput(
        role=role_view(role), is_admin=user.is_admin, message=message, recipe=role.recipe, now=now.isoformat()
    )
    return PlanRequest(user=user, role=role, given=given)


def needed(given: PlanInput, need: Need) -> PlanInput:
    """The input of the round that the loop tells this of."""
    return replace(
        given,
        round=need.round,
        is_last=need.is_last,
        found=need.found,
        missing=need.missing,
        is_heard=bool(need.heard) and need.heard_at == need.round,
    )


def set_to(choices: Mapping[str, str], use: str) -> tuple[str, ...]:
    """The tools that the person set to this use, `always` or `never`, in order."""
    return tuple(sorted(name for name, chosen in choices.items() if chosen == use))


class AbsentTools(Struct, frozen=True, kw_only=True):
    """The tools that cannot be used in a round, with the reason for each; made by `absent.py`.

    outside: those of them that the role or the account is not granted.
    """

    reasons: Mapping[str, Setup] = field(default_factory=dict)
    outside: tuple[str, ...] = ()

    def wanted(self, given: PlanInput) -> tuple[Setup | None, str]:
        """Return what the message perhaps wants of it; and the note on it for the model, "" unless that is likely."""
        name, is_likely = wanted_unset(given, self.reasons, self.outside)
        lacking = self.reasons.get(name)
        return lacking, note_on(lacking.title, lacking.state) if lacking and is_likely else ""

    def for_receipt(self, lacking: Setup, *, is_admin: bool) -> dict[str, Any]:
        """Return what the receipt holds of one: the words for this person, and the tools that wait for the same."""
        tools = [name for name, why in self.reasons.items() if why == lacking]
        return {**lacking.for_person(is_admin=is_admin), "tools": tools[:TOOLS_NAMED]}


NOTHING_ABSENT = AbsentTools()


class PlannedRound(Struct, frozen=True, kw_only=True):
    """A round as it goes out, with what is stored: the receipt for the log, the memory for the conversation.

    `given`: what the plan was made from. `tools`: the declared schemas as one text, as they are stored.
    """

    round: RoundPlan
    given: PlanInput
    tools: str
    receipt: dict[str, Any]
    memory: dict[str, Any]
    plan: ToolPlan

    @property
    def lacking(self) -> dict[str, Any]:
        """Return what the receipt holds of something that is perhaps wanted and cannot be used; {} for nothing."""
        return self.receipt.get("setup") or self.receipt.get(PERHAPS) or {}


def planned(
    asked: PlanRequest,
    snapshot: Snapshot,
    ready: Sequence[str],
    persona: str,
    absent: AbsentTools = NOTHING_ABSENT,
) -> PlannedRound:
    """The round that this is asked for; UserError for an unknown recipe. Counts tokens: run it off the event loop.

    absent: tools that cannot be used now, with the reason: one that the message wants is named in the tail.
    """
    bare_tokens = tokens.count_text_message("system", system_prompt(persona, asked.role.prompt, ""))
    message_tokens = tokens.count_text_message("user", asked.given.message)
    given = in_time(asked.over(snapshot, ready, bare_tokens + asked.given.history_tokens + message_tokens))
    given = replace(given, facts=_recalled(asked))
    made = plan(given)
    prompt = asked.role.prompt
    if _only_talks(given, made):
        prompt = talk_prompt(asked.role)
        bare_tokens = tokens.count_text_message("system", system_prompt(persona, prompt, ""))
    lacking, note = absent.wanted(given)
    behind = "\n".join(filter(None, (made.notes, note)))
    system = system_prompt(persona, prompt, made.catalog)
    shown = listing(made.skills) if given.round == 1 or given.is_heard else ""
    known = recall.listing(given.facts)
    notes, skills, facts = map(tokens.count, (behind, shown, known))
    catalog = tokens.count_text_message("system", system) - bare_tokens
    costs = replace(made.costs, catalog=catalog, notes=notes, skills=skills)
    made = replace(made, costs=costs)
    moving = tail(
        datetime.fromisoformat(given.now),
        asked.user.time_zone,
        round_number=given.round,
        notes="\n".join(filter(None, (known, shown, behind))),
        is_last=given.is_last,
    )
    said = f"{given.message}\n\n{moving}" if moving else given.message
    tools, late_from = declared(made.schemas), _late_from(given, made)
    prefix = tools if late_from is None else declared(made.schemas[:late_from])
    told = {
        **_receipt(made, snapshot),
        "prefix": {"tools": digest(prefix), "system": digest(system), "history": given.summary},
        "system_tokens": bare_tokens,
        "message_tokens": tokens.count_text_message("user", said) - notes - skills - facts,
        "facts": [portable.plain(fit) for fit in given.facts],
        "facts_tokens": facts,
        "history_tokens": given.history_tokens,
    }
    if asked.no_tools:
        told["no_tools"] = dict(asked.no_tools)
    if lacking:
        told["setup" if note else PERHAPS] = absent.for_receipt(lacking, is_admin=asked.user.is_admin)
    if given.is_heard:
        told["labels"] = {**told["labels"], PLANNED_FOR: "what was sent meanwhile"}
    if given.is_last and given.round == 1 and given.mode != "chat":
        told["labels"] = {**told["labels"], "one round": "no tools"}
    out = _round(given.round, made, system, moving, late_from)
    return PlannedRound(
        round=out, given=given, tools=tools, receipt=told, memory=portable.plain(made.memory), plan=made
    )


def _round(number: int, made: ToolPlan, system: str, moving: str, late_from: int | None) -> RoundPlan:
    again = [name for label, name in made.labels if label == LIKELIER and made.added]
    return RoundPlan(
        round=number,
        system=system,
        tools=made.schemas,
        tail=moving,
        tool_choice=made.tool_choice,
        calls_as_text=made.calls_as_text,
        added=(*again, *made.added),
        hints=made.hints,
        late_from=late_from,
        revealed=made.added if made.late == "native" and late_from is not None else (),
    )


def _only_talks(given: PlanInput, made: ToolPlan) -> bool:
    """Tell whether no tool can come into this request: chat only, nothing permitted, or the only round."""
    return not made.sent and (not made.reachable or (given.is_last and given.round == 1))


def _receipt(made: ToolPlan, snapshot: Snapshot) -> dict[str, Any]:
    """The plan's receipt, with what the line of each tool after the message takes."""
    told, entries = receipt(made), index_of(snapshot).entries
    noted = [{**one, "tokens": entries[one["name"]].tokens_noted} for one in told["noted"]]
    return {**told, "noted": noted}


def request_tokens(receipt: dict[str, Any]) -> int:
    """Tokens of the whole request that a receipt stands for; the history among them is an estimate."""
    behind = ("notes_tokens", "skills_tokens", "facts_tokens")
    return sum(receipt[key] for key in ("tokens", *behind, "system_tokens", "message_tokens", "history_tokens"))


def _recalled(asked: PlanRequest) -> tuple[FactFit, ...]:
    """Return what is remembered and fits the message that this round is the first to read."""
    if not asked.facts:
        return ()
    room = asked.facts_tokens
    return recall.recalled(asked.given.message, asked.facts, room, tokens.count, shown=asked.carried)


def _late_from(given: PlanInput, made: ToolPlan) -> int | None:
    """From which place on the tools came after the epoch's prefix was cached, for a backend that declares late."""
    is_native = given.profile.caches and given.profile.late_tools == "native"
    return made.memory.opening if is_native and made.memory.is_open and made.memory.opening and made.sent else None


def declared(schemas: Sequence[ToolSchema]) -> str:
    """The `tools` of a request as one minified text, in their order."""
    told = [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in schemas]
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def role_view(role: Role) -> RoleView:
    """Return what selection needs of a role."""
    return RoleView(
        name=role.name,
        tools=role.tools,
        admin_tools=role.admin_tools,
        core=role.core,
        budget_tokens=role.tool_budget_tokens,
        is_admin_only=role.is_admin_only,
        within=role.within,
        lacks=role.lacks,
    )


def past_turns(turns: Sequence[Sequence[Message]]) -> tuple[PastTurn, ...]:
    """Earlier turns with their voices kept apart, from the stored messages of each turn, oldest first.

    What was sent while one ran begins another, as it did when it was planned.
    """
    return tuple(_past_turn(part) for messages in turns for part in _by_message(messages))


def with_so_far(past: Sequence[PastTurn], text: str, called: Sequence[str]) -> tuple[PastTurn, ...]:
    """The earlier turns and the running one, as they stand before what was sent while it ran."""
    so_far = PastTurn(user=text, called=tuple(dict.fromkeys(called)))
    return (*past, so_far)[-PAST_TURNS:]


def as_one(heard: Sequence[str]) -> str:
    """Return what was sent meanwhile as the message that a round is planned for."""
    return "\n\n".join(heard)


def _by_message(messages: Sequence[Message]) -> list[list[Message]]:
    """A turn's messages, parted before each of the person's; a note of Cortex, in brackets, is none of them."""
    parts: list[list[Message]] = []
    for message in messages:
        if not parts or (message.speaker == "user" and not is_note(message.said)):
            parts.append([])
        parts[-1].append(message)
    return parts


def _past_turn(messages: Sequence[Message]) -> PastTurn:
    said: dict[str, list[str]] = {"user": [], "assistant": []}
    called: list[str] = []
    outside: list[str] = []
    given: list[str] = []
    for message in messages:
        if message.speaker in said and message.said:
            said[message.speaker].append(message.said)
        for call in message.calls:
            name, arguments = behind_bridge(call)
            called.append(name)
            given += [cut(value) for value in arguments.values() if isinstance(value, str)]
        outside += [part.text for part in message.parts if isinstance(part, ToolResult)]
    return PastTurn(
        user=said["user"][0] if said["user"] else "",
        assistant=said["assistant"][-1] if said["assistant"] else "",
        called=tuple(dict.fromkeys(called)),
        untrusted="\n".join(outside)[:TAINTED_CHARACTERS],
        arguments=tuple(given),
        results=tuple(cut(words) for words in outside),
    )
