"""Replays a scripted conversation through the real planner, round by round as the loop runs it, and pays each request.

The same work is done under every recipe: a tool that was not sent costs what it costs to get it. First a discovery
where one is declared, then a call on the catalog's word alone (refused once, with the schema in the error), then the
missing-tool round, and last the person, who asks again with all tools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from msgspec import structs

from cortex.agent.prompt import tail, with_tail
from cortex.agent.toolless import as_text
from cortex.base import tokens
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, to_json, user
from cortex.base.role import ToolMode
from cortex.selection.discover import discover
from cortex.selection.pipeline import plan
from cortex.selection.types import PlannerMemory, ToolPlan
from cortex.services.tools.plans import past_turns
from tests.bench.cache import Cache, Piece
from tests.bench.ground import START, BenchGround
from tests.bench.regimes import ROUND_S, Regime
from tests.bench.talks import Call, Talk, TalkTurn

DISCOVER, BRIDGE = "tools_discover", "tool_call"
DISCOVERIES_A_TOOL, PAST_TURNS = 2, 4
LACK = "I don't have a tool here that could do this for you."
AGAIN = "Try again, with all tools this time: "


@dataclass(slots=True, kw_only=True)
class Tally:
    """What conversations came to. `extra`: requests that a missed tool cost; `asked_again`: times the person had to.

    `wanted`: rounds that need tools; `had`: those whose tools were there at once, unasked.
    """

    cost: float = 0.0
    requests: int = 0
    extra: int = 0
    asked_again: int = 0
    rewrites: int = 0
    wanted: int = 0
    had: int = 0


@dataclass(slots=True, kw_only=True)
class _Run:
    """A conversation under way. `past`: the messages of each finished turn; `told`: tools whose schema stands there.

    `is_bare`: no request carries a tool or a catalog, and yet every call is made.
    """

    ground: BenchGround
    recipe: str
    cache: Cache
    tally: Tally
    at_s: float = 0.0
    number: int = 0
    memory: PlannerMemory = field(default_factory=PlannerMemory)
    past: list[tuple[Message, ...]] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    is_bare: bool = False


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A turn under way, as the loop keeps it."""

    text: str
    mode: ToolMode
    added: list[Message]
    round: int = 0
    found: list[str] = field(default_factory=list)
    discoveries: int = 0
    has_retried: bool = False


def replay(
    talk: Talk, regime: Regime, ground: BenchGround, recipe: str, tally: Tally, *, is_bare: bool = False
) -> None:
    """Play the conversation; what it came to is added to the tally.

    `is_bare`: as if calls needed no tools declared: what messages, system prompt and output cost alone.
    """
    cache = Cache(regime.profile, output_factor=regime.output_factor)
    run = _Run(ground=ground, recipe=recipe, cache=cache, tally=tally, is_bare=is_bare)
    for turn in talk:
        _play(run, turn, "auto")
        run.at_s += regime.gap_s


def _play(run: _Run, turn: TalkTurn, mode: ToolMode) -> None:
    """One message until its answer; where a tool cannot be had, the person asks once more with all of them."""
    now = _Turn(text=turn.text, mode=mode, added=[user(turn.text)])
    run.number += 1
    made = _planned(run, now)
    run.tally.wanted += len(turn.rounds) if mode == "auto" else 0
    for at, calls in enumerate(turn.rounds):
        run.tally.had += mode == "auto" and not _lacking(run, now, made, calls)
        ready = _obtained(run, now, made, calls)
        if ready is None:
            run.past.append(tuple(now.added))
            run.tally.asked_again += 1
            rest = replace(turn, text=AGAIN + turn.text, rounds=turn.rounds[at:])
            return _play(run, rest, "all")
        _call(run, now, ready, calls)
        made = _planned(run, now)
    _send(run, now, made, assistant(turn.answer))
    run.past.append(tuple(now.added))
    return None


def _obtained(run: _Run, now: _Turn, made: ToolPlan, calls: Sequence[Call]) -> ToolPlan | None:
    """A plan under which these calls can be made, its way there paid; None when the answer is that they can't."""
    while lacking := _lacking(run, now, made, calls):
        run.tally.extra += 1
        if DISCOVER in _declared(made) and now.discoveries < DISCOVERIES_A_TOOL:
            made = _discovered(run, now, made, lacking[0])
            continue
        if lacking[0].tool in made.catalog and BRIDGE in _declared(made):
            made = _guessed(run, now, made, lacking[0])
            continue
        _send(run, now, made, assistant(LACK))
        mended = None if now.has_retried or now.mode != "auto" else _planned(run, now, missing=LACK)
        now.has_retried = True
        if mended is None or not mended.added:
            return None
        names = ", ".join(mended.added)
        now.added.append(user(f"(Cortex: these tools are available now: {names}. Go on with the request.)"))
        made = mended
    return made


def _lacking(run: _Run, now: _Turn, made: ToolPlan, calls: Sequence[Call]) -> list[Call]:
    """Those of the calls whose tool the model was neither sent nor told of, where it can call what it was told of."""
    known = run.ground.carried(made) | set(now.found) | (run.told if BRIDGE in _declared(made) else set())
    return [call for call in calls if call.tool not in known]


def _declared(made: ToolPlan) -> frozenset[str]:
    return frozenset(item.name for item in made.sent)


def _discovered(run: _Run, now: _Turn, made: ToolPlan, call: Call) -> ToolPlan:
    """One discovery: by the name that the catalog shows, else for what the tool does, then in the request's words."""
    words = call.tool if call.tool in made.catalog else now.text if now.discoveries else call.tool.replace("_", " ")
    now.discoveries += 1
    asked = ToolCall(id=_call_id(run, now, 0), name=DISCOVER, arguments=tokens.minified({"query": words}))
    _send(run, now, made, assistant("", asked))
    is_bridged = BRIDGE in _declared(made)
    found = discover(words, run.ground.snapshot, made.reachable, is_bridged=is_bridged, recipe=run.recipe)
    now.added.append(results(ToolResult(call_id=asked.id, name=DISCOVER, text=found.text)))
    _keep(run, now, (DISCOVER, *found.names))
    return _planned(run, now)


def _guessed(run: _Run, now: _Turn, made: ToolPlan, call: Call) -> ToolPlan:
    """A call of a tool that the catalog names, with arguments guessed: refused, and the error holds the schema."""
    guessed = {"name": call.tool, "arguments": {"input": now.text[:80]}}
    asked = ToolCall(id=_call_id(run, now, 0), name=BRIDGE, arguments=tokens.minified(guessed))
    _send(run, now, made, assistant("", asked))
    entry = next(entry for entry in run.ground.snapshot.entries if entry.name == call.tool)
    refusal = f"Wrong arguments, nothing ran. Expected: {entry.line} {tokens.minified(entry.full.parameters)}"
    now.added.append(results(ToolResult(call_id=asked.id, name=BRIDGE, text=refusal, is_error=True)))
    run.told.add(call.tool)
    return _planned(run, now)


def _call(run: _Run, now: _Turn, made: ToolPlan, calls: Sequence[Call]) -> None:
    """The calls of a round and their results; through the bridge where a tool is not declared and one is there."""
    now.discoveries = 0
    declared = _declared(made)
    asked = []
    for number, call in enumerate(calls):
        name, arguments = call.tool, dict(call.arguments)
        if name not in declared and BRIDGE in declared:
            name, arguments = BRIDGE, {"name": call.tool, "arguments": arguments}
        asked.append(ToolCall(id=_call_id(run, now, number), name=name, arguments=tokens.minified(arguments)))
    _send(run, now, made, assistant("", *asked))
    given = zip(asked, calls, strict=True)
    now.added.append(results(*(ToolResult(call_id=one.id, name=one.name, text=call.result) for one, call in given)))
    _keep(run, now, tuple(call.tool for call in calls))


def _keep(run: _Run, now: _Turn, names: Sequence[str]) -> None:
    """What was found or used: the planner hears of it, and the transcript shows it from now on."""
    now.found.extend(name for name in names if name not in now.found)
    run.told.update(names)


def _call_id(run: _Run, now: _Turn, number: int) -> str:
    return f"call_{run.number:02}{now.round:02}{number:02}"


def _planned(run: _Run, now: _Turn, missing: str = "") -> ToolPlan:
    """The plan of the next round; one after a missing tool leaves no trace unless it found something."""
    ground = run.ground
    moment = START + timedelta(seconds=run.at_s)
    history = sum(ground.transcript_tokens(message) for messages in run.past for message in messages)
    asked = ground.asked(now.text, run.recipe)
    made = plan(
        structs.replace(
            asked,
            mode=now.mode,
            past=past_turns(run.past[-PAST_TURNS:]),
            memory=run.memory,
            now=moment.isoformat(),
            turn=f"t{run.number}",
            round=now.round + 1,
            found=tuple(now.found),
            missing=missing,
            fixed_tokens=asked.fixed_tokens + history,
            history_tokens=history,
        )
    )
    if missing and not made.added:
        return made
    now.round += 1
    run.memory = made.memory
    now.added = with_tail(now.added, tail(moment, "UTC", round_number=now.round, notes=made.notes))
    return made


def _send(run: _Run, now: _Turn, made: ToolPlan, reply: Message) -> None:
    """The request of this plan goes out and is paid; the reply joins the transcript."""
    spoken = tokens.count("".join([reply.text, *(f"{call.name}{call.arguments}" for call in reply.calls)]))
    paid = run.cache.pay(_request(run, now, made), spoken, run.at_s)
    run.tally.cost += paid.cost
    run.tally.rewrites += paid.is_rewrite
    run.tally.requests += 1
    run.at_s += ROUND_S
    now.added.append(reply)


def _request(run: _Run, now: _Turn, made: ToolPlan) -> list[Piece]:
    """The request as it is serialized: tools, system, catalog, messages."""
    ground = run.ground
    declared = () if run.is_bare else tuple(zip(made.schemas, made.sent_tokens, strict=True))
    pieces = [Piece(text=tokens.minified(tokens.wire_schema(schema)), tokens=size) for schema, size in declared]
    pieces.append(Piece(text="system", tokens=ground.system_tokens()))
    if made.catalog and not run.is_bare:
        pieces.append(Piece(text=made.catalog, tokens=ground.catalog_tokens(made.catalog)))
    messages = (*(message for messages in run.past for message in messages), *now.added)
    for message in as_text(messages) if made.calls_as_text else messages:
        pieces.append(Piece(text=tokens.minified(to_json(message)), tokens=ground.transcript_tokens(message)))
    return pieces
