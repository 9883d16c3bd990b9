"""A job as a form: what is typed, field by field, and its check. Every refusal names its field.

A setting stands here alone: as a field of `JobForm` with its words, its limits and its place on the page.

Used by `jobs.py`. The words of a time are read by `schedule/reading.py`; tools and models are those of this server.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast, get_args

from msgspec import Struct, field

from cortex.agent.arguments import check
from cortex.base.errors import UserError
from cortex.base.job import JobKind
from cortex.base.json_text import parsed
from cortex.base.messages import ToolCall
from cortex.base.numbers import whole_number
from cortex.base.record import field_names
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.ports.channels import ChannelName
from cortex.ports.schedule import Timing
from cortex.storage.job_rows import JobRow, JobValues
from cortex.toolkit.registry import Registry

NAME_CHARACTERS = 80
FIRST_WORDS = 40  # characters of a name that is made of the prompt
PROMPT_CHARACTERS = 4_000
SettingKind = Literal["number", "choice", "switch"]
SettingGroup = Literal["role", "limits", "notices", "problems"]


class JobSetting(Struct, frozen=True, kw_only=True):
    """A setting of a job: said here once, and shown, read and checked by this alone. The page has a place a group.

    `choices`: value -> words, in the order shown. `limits`: least and most of a number, and what others are told.
    """

    group: SettingGroup
    kind: SettingKind
    label: str
    hint: str
    default: str
    choices: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[int, int, str] = (0, 0, "")

    def value(self, name: str, typed: str) -> str | int | bool | None:
        """Return the value as a job keeps it; a number without a default may be left out. UserError for no value."""
        if self.kind == "switch":
            return bool(typed)
        if self.kind == "choice":
            return _choice(typed, name, self.choices)
        if not typed and not self.default:
            return None
        least, most, refusal = self.limits
        number = whole_number(typed)
        if number is None or not least <= number <= most:
            raise UserError(refusal, field=name)
        return number


def _number(group: SettingGroup, label: str, hint: str, default: str, limits: tuple[int, int, str]) -> JobSetting:
    return JobSetting(group=group, kind="number", label=label, hint=hint, default=default, limits=limits)


def _choose(group: SettingGroup, label: str, hint: str, choices: Mapping[str, str]) -> JobSetting:
    """The first choice is the default."""
    default = next(iter(choices))
    return JobSetting(group=group, kind="choice", label=label, hint=hint, default=default, choices=choices)


def _switch(group: SettingGroup, label: str, hint: str, default: Literal["on", ""]) -> JobSetting:
    return JobSetting(group=group, kind="switch", label=label, hint=hint, default=default)


SETTINGS = {
    "mode": _choose(
        "role",
        "Tool mode",
        "Auto sends the tools the prompt needs, Chat only sends none, All tools sends the whole list.",
        {"": "Automatic", "auto": "Auto", "chat": "Chat only", "all": "All tools"},
    ),
    "max_rounds": _number(
        "role",
        "Rounds",
        "The most model calls per run. Leave empty for the role's limit.",
        "",
        (1, MAX_ROUNDS_CAP, f"Rounds: 1 to {MAX_ROUNDS_CAP}, or empty for the role's limit."),
    ),
    "budget_tokens": _number(
        "limits",
        "Tokens per run",
        "The run stops at this number. Leave empty for no limit.",
        "",
        (1, 100_000_000, "Tokens per run: a whole number above 0, or empty."),
    ),
    "may_make_jobs": _switch(
        "limits",
        "Can create and delete jobs",
        "Off is safer: a job that creates jobs can multiply without you.",
        "",
    ),
    "notify_on": _choose(
        "notices",
        "Notify me",
        "Every run is kept in its chat and its list of runs, with or without a notification.",
        {
            "always": "after every run",
            "failure": "when it failed",
            "change": "when the result changes",
            "never": "never",
        },
    ),
    "keeps_quiet_hours": _switch(
        "notices",
        "Respect my quiet hours",
        "It still runs on time; the notification waits until quiet hours end.",
        "on",
    ),
    "on_miss": _choose(
        "problems",
        "Runs missed while Cortex was off",
        "Missed runs are always listed.",
        {"once": "run once", "skip": "skip them", "catchup": "run each of them"},
    ),
    "fire_within_s": _number(
        "problems",
        "Allowed delay, in seconds",
        "Later than this, a run counts as missed. 900 is 15 minutes.",
        "900",
        (60, 30 * 86_400, "Allowed delay in seconds: 60 to 2,592,000 (30 days)."),
    ),
    "overlap": _choose(
        "problems",
        "If the previous run is still going",
        "A job never runs twice at once.",
        {"skip": "skip this one", "queue": "wait for it"},
    ),
    "timeout_s": _number(
        "problems",
        "Time limit, in seconds",
        "Longer runs are stopped and count as failed.",
        "3600",
        (10, 86_400, "Time limit in seconds: 10 to 86,400 (a day)."),
    ),
    "retries": _number(
        "problems",
        "Retries",
        "How often a failed run is tried again, with growing delays.",
        "0",
        (0, 10, "Retries: 0 to 10."),
    ),
    "pause_after": _number(
        "problems",
        "Pause after failures in a row",
        "You are notified. 0 never pauses it.",
        "5",
        (0, 100, "Failures in a row: 1 to 100, or 0 for never."),
    ),
}
SWITCHES = tuple(name for name, setting in SETTINGS.items() if setting.kind == "switch")


class JobForm(Struct, frozen=True, kw_only=True):
    """The form as typed; lists are words with blanks between, switches "on" or ""; `own_tools` "": the role's tools.

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
    budget_usd: str = ""
    conversation_id: str = ""
    deliver_to: str = ""
    mode: str = SETTINGS["mode"].default
    max_rounds: str = SETTINGS["max_rounds"].default
    budget_tokens: str = SETTINGS["budget_tokens"].default
    may_make_jobs: str = SETTINGS["may_make_jobs"].default
    notify_on: str = SETTINGS["notify_on"].default
    keeps_quiet_hours: str = SETTINGS["keeps_quiet_hours"].default
    on_miss: str = SETTINGS["on_miss"].default
    fire_within_s: str = SETTINGS["fire_within_s"].default
    overlap: str = SETTINGS["overlap"].default
    timeout_s: str = SETTINGS["timeout_s"].default
    retries: str = SETTINGS["retries"].default
    pause_after: str = SETTINGS["pause_after"].default

    @classmethod
    def typed(cls, given: Mapping[str, str]) -> "JobForm":
        """A form as a browser sends it: an absent switch is off, other absent fields keep their default."""
        known = {name: given[name].strip() for name in field_names(cls) if name in given}
        return cls(**{**dict.fromkeys(SWITCHES, ""), **known})

    @classmethod
    def of(cls, job: JobRow) -> "JobForm":
        """The form that would make this job again."""
        plain = {
            name: str(getattr(job, name)) if getattr(job, name) is not None else ""
            for name in cls.__struct_fields__
            if name not in ("when", "own_tools", "tools", "arguments", "deliver_to", *SWITCHES)
        }
        return cls(
            **plain,
            when=job.typed or (job.expression if job.timing_kind == "cron" else job.words),
            own_tools="" if job.tools is None else "on",
            tools=" ".join(job.tools or ()),
            arguments="" if job.arguments is None else json.dumps(job.arguments, ensure_ascii=False, indent=2),
            deliver_to=" ".join(job.deliver_to),
            **{name: "on" if getattr(job, name) else "" for name in SWITCHES},
        )


class JobChoices(Struct, frozen=True, kw_only=True):
    """The choices on the form. `words`: names and categories of tools; `registry`: what their arguments are."""

    registry: Registry
    roles: Collection[str]
    models: Collection[str]
    tools: Collection[str]
    words: Collection[str]
    channels: Collection[ChannelName]


def checked(form: JobForm, timing: Timing, known: JobChoices) -> JobValues:
    """The job that the form says, in its person's own words. UserError with its field for what cannot be."""
    kind = cast("JobKind", _choice(form.kind, "kind", get_args(JobKind)))
    prompt = "" if kind == "call" else _text(form.prompt, "prompt", PROMPT_CHARACTERS, "Enter a prompt or text.")
    arguments = _arguments(form, known) if kind == "call" else None
    short = prompt or form.tool
    settings: dict[str, Any] = {name: one.value(name, getattr(form, name)) for name, one in SETTINGS.items()}
    return JobValues(
        name=_text(form.name or _first_words(short), "name", NAME_CHARACTERS, "Give it a name."),
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
        budget_usd=_dollars(form.budget_usd),
        conversation_id=form.conversation_id or None,
        deliver_to=_channels(form.deliver_to, known),
        **settings,
        is_tainted=False,
        is_private=False,
    )


def _first_words(text: str) -> str:
    """As many whole words as make a name; the beginning of one that is longer by itself."""
    words = " ".join(text.split())
    return words if len(words) <= FIRST_WORDS else words[: FIRST_WORDS + 1].rpartition(" ")[0] or words[:FIRST_WORDS]


def _text(text: str, field: str, most: int, empty: str) -> str:
    if not text.strip():
        raise UserError(empty, field=field)
    if len(text) > most:
        raise UserError(f"At most {most:,} characters; these are {len(text):,}.", field=field)
    return text.strip() if field == "prompt" else " ".join(text.split())


def _choice(value: str, field: str, choices: Collection[str]) -> str:
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


def _channels(text: str, known: JobChoices) -> tuple[ChannelName, ...]:
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if strange := next((name for name in names if name not in known.channels), ""):
        raise UserError(
            f"Unknown notification channel {strange!r}; choose from {', '.join(known.channels)}.", field="deliver_to"
        )
    return names


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
