"""A job as a form: what is typed, field by field, and its check. Every refusal names its field.

Used by `jobs.py`. The words of a time are read by `schedule/reading.py`; tools and models are those of this server.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar, cast, get_args

from cortex.agent.arguments import check
from cortex.base.errors import UserError
from cortex.base.job import JobKind, NotifyOn, OnMiss, Overlap
from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall
from cortex.base.numbers import whole_number
from cortex.base.role import ToolMode
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.ports.channels import ChannelName
from cortex.ports.schedule import Timing
from cortex.storage.job_rows import JobRow, JobValues
from cortex.toolkit.registry import Registry

NAME_CHARACTERS = 80
PROMPT_CHARACTERS = 4_000
LIMITS: dict[str, tuple[int, int, str]] = {
    "fire_within_s": (60, 30 * 86_400, "Allowed delay in seconds: 60 to 2,592,000 (30 days)."),
    "timeout_s": (10, 86_400, "Time limit in seconds: 10 to 86,400 (a day)."),
    "retries": (0, 10, "Retries: 0 to 10."),
    "pause_after": (0, 100, "Failures in a row: 1 to 100, or 0 for never."),
    "max_rounds": (1, MAX_ROUNDS_CAP, f"Rounds: 1 to {MAX_ROUNDS_CAP}, or empty for the role's limit."),
    "budget_tokens": (1, 100_000_000, "Tokens per run: a whole number above 0, or empty."),
}
_BOOLS = ("keeps_quiet_hours", "may_make_jobs")

V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForm:
    """What is typed. Lists are words with blanks between, switches "on" or ""; `own_tools` "" takes the role's tools.

    `when`: words or a cron line; `time_zone` "" is the person's; `conversation_id` "" is one of its own.
    """

    name: str = ""
    kind: str = "prompt"
    prompt: str = ""
    tool: str = ""
    arguments: str = ""
    when: str = ""
    time_zone: str = ""
    role: str = ""
    model: str = ""
    own_tools: str = ""
    tools: str = ""
    mode: str = ""
    max_rounds: str = ""
    budget_tokens: str = ""
    budget_usd: str = ""
    conversation_id: str = ""
    deliver_to: str = ""
    notify_on: str = "always"
    on_miss: str = "once"
    fire_within_s: str = "900"
    overlap: str = "skip"
    retries: str = "0"
    timeout_s: str = "3600"
    pause_after: str = "5"
    keeps_quiet_hours: str = "on"
    may_make_jobs: str = ""

    @classmethod
    def typed(cls, given: Mapping[str, str]) -> "JobForm":
        """A form as a browser sends it: an absent switch is off, other absent fields keep their default."""
        known = {field.name: given[field.name].strip() for field in fields(cls) if field.name in given}
        return cls(**{**dict.fromkeys(_BOOLS, ""), **known})

    @classmethod
    def of(cls, job: JobRow) -> "JobForm":
        """The form that would make this job again."""
        plain = {
            name: str(getattr(job, name)) if getattr(job, name) is not None else ""
            for name in cls.__dataclass_fields__
            if name not in ("when", "own_tools", "tools", "arguments", "deliver_to", *_BOOLS)
        }
        return cls(
            **plain,
            when=job.typed or (job.expression if job.timing_kind == "cron" else job.words),
            own_tools="" if job.tools is None else "on",
            tools=" ".join(job.tools or ()),
            arguments="" if job.arguments is None else json.dumps(job.arguments, ensure_ascii=False, indent=2),
            deliver_to=" ".join(job.deliver_to),
            **{name: "on" if getattr(job, name) else "" for name in _BOOLS},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChoices:
    """What there is to choose from. `words`: names and categories of tools; `registry`: what their arguments are."""

    registry: Registry
    roles: Collection[str]
    models: Collection[str]
    tools: Collection[str]
    words: Collection[str]


def checked(form: JobForm, timing: Timing, known: JobChoices) -> JobValues:
    """The job that the form says, in its person's own words. UserError with its field for what cannot be."""
    kind = cast("JobKind", _choice(form, "kind", JobKind))
    prompt = "" if kind == "call" else _text(form.prompt, "prompt", PROMPT_CHARACTERS, "Enter a prompt or text.")
    arguments = _arguments(form, known) if kind == "call" else None
    short = prompt or form.tool
    return JobValues(
        name=_text(form.name or " ".join(short.split())[:40], "name", NAME_CHARACTERS, "Give it a name."),
        kind=kind,
        prompt=prompt,
        tool=form.tool if kind == "call" else "",
        arguments=arguments,
        timing_kind=timing.kind,
        expression=timing.expression,
        time_zone=timing.time_zone,
        words=timing.words,
        typed=timing.typed,
        role=_one_of(form.role, "role", known.roles),
        model=_one_of(form.model, "model", known.models),
        tools=(form.tool,) if kind == "call" else _tools(form, known),
        mode=cast("ToolMode | Literal['']", _choice(form, "mode", ToolMode, "")),
        max_rounds=_maybe(form, "max_rounds"),
        budget_tokens=_maybe(form, "budget_tokens"),
        budget_usd=_dollars(form.budget_usd),
        conversation_id=form.conversation_id or None,
        deliver_to=_channels(form.deliver_to),
        notify_on=cast("NotifyOn", _choice(form, "notify_on", NotifyOn)),
        on_miss=cast("OnMiss", _choice(form, "on_miss", OnMiss)),
        fire_within_s=_whole(form, "fire_within_s"),
        overlap=cast("Overlap", _choice(form, "overlap", Overlap)),
        retries=_whole(form, "retries"),
        timeout_s=_whole(form, "timeout_s"),
        keeps_quiet_hours=bool(form.keeps_quiet_hours),
        pause_after=_whole(form, "pause_after"),
        may_make_jobs=bool(form.may_make_jobs),
        is_tainted=False,
        is_private=False,
    )


def _text(text: str, field: str, most: int, empty: str) -> str:
    if not text.strip():
        raise UserError(empty, field=field)
    if len(text) > most:
        raise UserError(f"At most {most:,} characters; these are {len(text):,}.", field=field)
    return text.strip() if field == "prompt" else " ".join(text.split())


def _choice(form: JobForm, field: str, kind: Any, *more: str) -> str:  # Any: a Literal
    value: str = getattr(form, field)
    choices = (*more, *get_args(kind))
    if value not in choices:
        raise UserError(f"Choose one of {', '.join(filter(None, choices))}.", field=field)
    return value


def _one_of(value: str, field: str, known: Collection[str]) -> str:
    if value and value not in known:
        raise UserError(f"There is no {field} {value!r}.", field=field)
    return value


def _tools(form: JobForm, known: JobChoices) -> tuple[str, ...] | None:
    if not form.own_tools:
        return None
    names = tuple(dict.fromkeys(form.tools.replace(",", " ").split()))
    if strange := next((name for name in names if name not in known.words), ""):
        raise UserError(f"There is no tool or category {strange!r} that you can use.", field="tools")
    return names


def _channels(text: str) -> tuple[ChannelName, ...]:
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    known = get_args(ChannelName)
    if strange := next((name for name in names if name not in known), ""):
        raise UserError(
            f"Unknown notification channel {strange!r}; choose from {', '.join(known)}.", field="deliver_to"
        )
    return cast("tuple[ChannelName, ...]", names)


def _whole(form: JobForm, field: str) -> int:
    least, most, words = LIMITS[field]
    number = whole_number(getattr(form, field))
    if number is None or not least <= number <= most:
        raise UserError(words, field=field)
    return number


def _maybe(form: JobForm, field: str) -> int | None:
    return _whole(form, field) if getattr(form, field) else None


def _dollars(text: str) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1_000_000:
        raise UserError("Dollars per run: a number above 0, such as 0.05, or empty.", field="budget_usd")
    return value


def _arguments(form: JobForm, known: JobChoices) -> dict[str, Any]:
    """Those of a call, as the gate will take them."""
    if form.tool not in known.tools:
        raise UserError(f"There is no tool {form.tool!r} here that you can use in a job.", field="tool")
    try:
        found = parsed(form.arguments or "{}")
    except ValueError as error:
        raise UserError(f"The arguments are not valid JSON: {error}.", field="arguments") from error
    if not isinstance(found, dict):
        raise UserError('The arguments must be a JSON object, such as {"query": "news"}.', field="arguments")
    names = frozenset(known.tools)
    taken = check(known.registry, names, ToolCall(id="form", name=form.tool, arguments=json.dumps(found)))
    if isinstance(taken, str):
        raise UserError(taken, field="arguments")
    return found
