"""Which settings admins change on the page, in which group and by which name; how a written one is checked.

What was given outside (environment, `.env`, command line) wins: `Settings.model_fields_set` names it. Stores nothing;
`services/upkeep/server_settings.py` does.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from msgspec import Struct
from pydantic import BaseModel, ValidationError

from cortex.base import scan
from cortex.base.errors import UserError
from cortex.base.form_words import what_is_wrong
from cortex.base.settings import HIDDEN, PREFIX, Settings

Value = str | bool | int | float | tuple[str, ...] | list[str] | None
Shape = Literal["text", "number", "switch", "choice", "secret"]


class SettingKind(Struct, frozen=True):
    """A setting that the page changes. `name`: of its field in `Settings`; `label`: what people call it.

    is_tried: a wrong one locks out whoever set it, so it goes back by itself unless confirmed. needs_restart: it is
    read at the start alone.
    """

    name: str
    label: str
    is_tried: bool = False
    needs_restart: bool = False


class InForce(Struct, frozen=True, kw_only=True):
    """The outcome of putting texts in force. `wrong`: why by name for each left out; `waits`: for a restart."""

    wrong: Mapping[str, str]
    waits: frozenset[str]


class SettingGroup(Struct, frozen=True):
    """Settings that go together: one form of the page."""

    id: str
    title: str
    kinds: tuple[SettingKind, ...]


GROUPS = (
    SettingGroup(
        "address",
        "Address and network",
        (
            SettingKind("public_url", "Public address", is_tried=True),
            SettingKind("trusted_proxies", "Trusted proxies", is_tried=True),
            SettingKind("allowed_hosts", "Further host names", is_tried=True),
            SettingKind("allow_plain_http", "Plain http", is_tried=True),
            SettingKind("host", "Listen on address", is_tried=True, needs_restart=True),
            SettingKind("port", "Listen on port", is_tried=True, needs_restart=True),
            SettingKind("connections_per_address", "Connections per address", is_tried=True),
            SettingKind("streams_per_person", "Live pages per person", is_tried=True),
        ),
    ),
    SettingGroup(
        "mail",
        "E-mail",
        (
            SettingKind("smtp_host", "Mail server"),
            SettingKind("smtp_port", "Port"),
            SettingKind("smtp_security", "Encryption"),
            SettingKind("smtp_user", "User name"),
            SettingKind("smtp_password", "Password"),
            SettingKind("smtp_from", "Sender address"),
            SettingKind("smtp_ca_file", "Certificate file"),
        ),
    ),
    SettingGroup(
        "notifications",
        "Notifications",
        (
            SettingKind("push_subject", "Contact for push services"),
            SettingKind("notify_hosts", "Servers in your network"),
        ),
    ),
    SettingGroup(
        "search",
        "Web search",
        (
            SettingKind("searxng_url", "SearXNG address", needs_restart=True),
            SettingKind("brave_api_key", "Brave Search key", needs_restart=True),
            SettingKind("ddgs", "DuckDuckGo", needs_restart=True),
        ),
    ),
    SettingGroup(
        "backups",
        "Backups",
        (
            SettingKind("backup_nightly", "Every night"),
            SettingKind("backup_to", "Place"),
            SettingKind("backup_passphrase", "Passphrase"),
            SettingKind("backup_s3_endpoint", "S3 address"),
            SettingKind("backup_s3_region", "S3 region"),
            SettingKind("backup_s3_key_id", "S3 key id"),
            SettingKind("backup_s3_secret", "S3 secret"),
        ),
    ),
    SettingGroup(
        "models",
        "Models and memory",
        (
            SettingKind("max_rounds", "Rounds per message"),
            SettingKind("model_hosts", "Model servers for everybody", needs_restart=True),
            SettingKind("calendar_servers", "Calendar servers for everybody", needs_restart=True),
            SettingKind("mail_servers", "Mail servers for everybody", needs_restart=True),
            SettingKind("google_client_id", "Google client id", needs_restart=True),
            SettingKind("google_client_secret", "Google client secret", needs_restart=True),
            SettingKind("microsoft_client_id", "Microsoft client id", needs_restart=True),
            SettingKind("local_requests_at_once", "Background requests per model server", needs_restart=True),
            SettingKind("memory_learns", "Learn facts"),
            SettingKind("memory_daily_tokens", "Tokens for learning, per day"),
        ),
    ),
    SettingGroup(
        "limits",
        "Limits",
        (
            SettingKind("upload_mb", "Largest file, in MB"),
            SettingKind("files_mb", "Uploaded files of one person, in MB"),
            SettingKind("workspace_mb", "Folder of one person, in MB", needs_restart=True),
            SettingKind("workspace_files", "Files in a person's folder", needs_restart=True),
            SettingKind("jobs_at_once", "Jobs at the same time"),
            SettingKind("plans_kept_days", "Days that plans are kept"),
            SettingKind("query_results_kept_days", "Days that query results are kept"),
        ),
    ),
    SettingGroup(
        "operation",
        "Operation",
        (
            SettingKind("time_zone", "Time zone of new accounts", needs_restart=True),
            SettingKind("log_level", "Log level"),
            SettingKind("metrics_token", "Token for /metrics"),
            SettingKind("otel_endpoint", "OpenTelemetry address", needs_restart=True),
            SettingKind("shutdown_grace_s", "Seconds to end running work"),
            SettingKind("offline_delay_ms", "Pause of the demo model, in ms", needs_restart=True),
        ),
    ),
)
EXTRAS = {
    "ddgs": ("ddgs", "DuckDuckGo's library is not installed. Run `make ddgs` first."),
    "otel_endpoint": ("opentelemetry.sdk", "Its packages are missing. Install Cortex with the extra 'otel' first."),
}
KINDS = {kind.name: kind for group in GROUPS for kind in group.kinds}
_VARIABLE = re.compile(rf"\b{PREFIX}([A-Z0-9_]+)")


def kind_of(name: str) -> SettingKind:
    """The setting of this name; UserError for one that is unknown or is changed outside alone."""
    plain = name.strip().lower().removeprefix("cortex_")
    if plain not in KINDS:
        is_outside = plain in Settings.model_fields
        why = "can only be set in the environment or in .env" if is_outside else "is not a setting"
        raise UserError(f"{name[:60]!r} {why}.", field="name")
    return KINDS[plain]


def shape_of(name: str) -> Shape:
    """Return how a setting is filled in."""
    kind = Settings.model_fields[name].annotation
    if name in HIDDEN:
        return "secret"
    if get_origin(kind) is Literal:
        return "choice"
    return "switch" if kind is bool else "number" if kind in (int, float) else "text"


def choices_of(name: str) -> tuple[str, ...]:
    """The values to choose from, of a choice."""
    return tuple(map(str, get_args(Settings.model_fields[name].annotation)))


def as_text(value: Value) -> str:
    """A value as it is written in the environment; "" for none."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return ", ".join(value) if isinstance(value, tuple | list) else str(value).strip()


def default_of(name: str) -> Any:  # Any: a setting's value
    """The value where nothing is set."""
    return Settings.model_fields[name].get_default(call_default_factory=True)


def with_texts(settings: Settings, texts: Mapping[str, str]) -> Settings:
    """The settings with what was given outside, and of the rest these texts. UserError names the wrong field."""
    for name, why in _lacking(texts).items():
        raise UserError(why, field=name)
    try:
        return _made(settings, texts)
    except ValidationError as error:
        name, why = _fault(error)
        label = KINDS[name].label if name in KINDS else name
        raise UserError(f"{label}: {why}.", field=name) from error


def put_in_force(settings: Settings, texts: Mapping[str, str], *, is_start: bool) -> InForce:
    """Let these texts hold for everybody who has the settings, but for those given outside.

    One that cannot hold any more (a folder is gone) is left out. is_start: also those that are read at the start alone.
    """
    wrong = _lacking(texts)
    left = {name: text for name, text in texts.items() if name not in wrong}
    while True:
        try:
            made = _made(settings, left)
            break
        except ValidationError as error:
            name, why = _fault(error)
            for gone in [name] if name in left else list(left):  # of one given outside: by what it stands beside
                wrong[gone] = why
                del left[gone]
    ours = [kind for kind in KINDS.values() if kind.name not in settings.model_fields_set]
    late = () if is_start else [kind.name for kind in ours if kind.needs_restart]
    settings.hold({kind.name: getattr(made, kind.name) for kind in ours if kind.name not in late})
    return InForce(
        wrong=wrong, waits=frozenset(name for name in late if getattr(made, name) != getattr(settings, name))
    )


def row_of(name: str) -> str:
    """Say where a person changes a setting: the pages make a link of it for an admin."""
    group = next(one for one in GROUPS if KINDS[name] in one.kinds)
    return f"Settings, {group.title}, “{KINDS[name].label}”"


def in_words(text: str) -> str:
    """Return a text of the host with its variables called as the page of settings calls them."""

    def label(found: re.Match[str]) -> str:
        kind = KINDS.get(found[1].lower())
        return f"“{kind.label}”" if kind else found[0]

    return _VARIABLE.sub(label, text)


def refusal(settings: Settings, *, has_account: bool) -> str:
    """Say why the daemon must not listen on this address, or "" when it may."""
    if settings.is_private:
        return ""
    if not has_account:
        return (
            f"CORTEX_HOST is {settings.host!r}, which others can reach, and no account exists yet. "
            "Set up first on 127.0.0.1, or make one with `cortex user add NAME --admin`."
        )
    if settings.allow_plain_http == "lan":
        return ""
    if not settings.public_url.startswith("https://"):
        return (
            f"CORTEX_HOST is {settings.host!r}, which others can reach. Set CORTEX_PUBLIC_URL to the https:// address "
            "of the proxy in front, or CORTEX_ALLOW_PLAIN_HTTP=lan on a network you trust."
        )
    if not settings.trusted_proxies:
        return "CORTEX_PUBLIC_URL is set: say in CORTEX_TRUSTED_PROXIES which address the proxy connects from."
    return ""


def _lacking(texts: Mapping[str, str]) -> dict[str, str]:
    """Say by name why not, for each that needs a package which is not there."""
    on = {name: packages for name, packages in EXTRAS.items() if texts.get(name, "false") != "false"}
    return {name: why for name, (package, why) in on.items() if not scan.is_installed(package)}


def _made(settings: Settings, texts: Mapping[str, str]) -> Settings:
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    made = Settings.__new__(Settings)
    BaseModel.__init__(made, **{**texts, **given})  # pydantic's own: that of settings would read the environment
    return made


def _fault(error: ValidationError) -> tuple[str, str]:
    first = error.errors(include_url=False, include_input=False)[0]
    return str(first["loc"][0]) if first["loc"] else "", what_is_wrong(first)
