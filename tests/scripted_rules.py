"""What the scripted model answers: by rules on the last user message and on which schemas were sent."""

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LONG = 20_000
_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Use:
    """A step: call this tool. `arguments` as text goes out as it is, well formed or not.

    `is_blind`: call it whether or not it was offered and calling is allowed, as models now and then do.
    """

    tool: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    is_blind: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """A step: say this, with calls if there are any. `thinking` comes first."""

    text: str = ""
    calls: tuple[Use, ...] = ()
    thinking: str = ""


Step = str | Use | Say | Callable[["Asked"], "str | Use | Say"]


@dataclass(frozen=True, slots=True)
class Rule:
    """For user messages that match `when` (searched, any case): one step for each answer of the turn."""

    when: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, the same for all wires. `told`: all messages, as they stand there."""

    system: str
    user: str
    tools: tuple[str, ...]
    is_calling_allowed: bool
    results: tuple[str, ...]
    answers_since_user: int
    told: str

    def way_to(self, use: Use) -> Use | None:
        """The call that reaches this tool: its own, the bridge where its signature was told, or none."""
        if use.tool in self.tools or use.is_blind:
            return use
        if "tool_call" not in self.tools or f"{use.tool}(" not in self.told:
            return None
        arguments = json.loads(use.arguments) if isinstance(use.arguments, str) else use.arguments
        return Use("tool_call", {"name": use.tool, "arguments": arguments})


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it goes out."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """The answer, the same for both wires."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""


def rule(when: str, *steps: Step) -> Rule:
    """A rule of these steps."""
    return Rule(when, steps)


def answer(asked: Asked, rules: list[Rule]) -> Spoken:
    """The scripted answer: a tool is called only if it was offered or told of, and calling is allowed."""
    step = _step(asked, rules)
    if callable(step):
        step = step(asked)
    said = Say(step) if isinstance(step, str) else Say(calls=(step,)) if isinstance(step, Use) else step
    ways = [asked.way_to(use) for use in said.calls]
    missing = [use.tool for use, way in zip(said.calls, ways, strict=True) if way is None]
    if not asked.is_calling_allowed and any(not use.is_blind for use in said.calls):
        return Spoken(text=said.text or f"I would use {said.calls[0].tool}, but no more tools may be called now.")
    if missing and "tools_discover" in asked.tools:
        query = f"{missing[0].replace('_', ' ')}: {asked.user}"[:200]
        return Spoken(text=said.text, calls=(_call(Use("tools_discover", {"query": query})),))
    if missing:
        return Spoken(text=f"I can't do that: I don't have a tool for it ({missing[0].replace('_', ' ')}).")
    return Spoken(text=said.text, calls=tuple(_call(way) for way in ways if way), thinking=said.thinking)


def in_pieces(text: str) -> list[str]:
    """The text as it is streamed: word by word, a long one in pages, for an event a word would take seconds."""
    if len(text) < LONG:
        return re.findall(r"\S+\s*", text)
    return [text[at : at + LONG // 10] for at in range(0, len(text), LONG // 10)]


def in_cuts(arguments: str) -> list[str]:
    """The arguments of a call as they are streamed: some letters at a time, long ones in pages."""
    size = 12 if len(arguments) < LONG else LONG // 10
    return [arguments[at : at + size] for at in range(0, len(arguments), size)]


def _step(asked: Asked, rules: list[Rule]) -> Step:
    for each in rules:
        if re.search(each.when, asked.user, re.IGNORECASE):
            # A discovery round is not a step of the script: count only the answers that used it up.
            done = min(asked.answers_since_user, len(each.steps))
            if done < len(each.steps):
                return each.steps[done]
            break
    if asked.results:
        return "Done. " + " ".join(asked.results)
    return f"You said: {asked.user}"


def _call(use: Use) -> Call:
    arguments = use.arguments if isinstance(use.arguments, str) else json.dumps(use.arguments)
    return Call(id=f"call_{next(_ids):06d}", name=use.tool, arguments=arguments)
