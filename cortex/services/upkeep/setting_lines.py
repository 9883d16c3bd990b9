"""The server's settings as the page and `cortex settings` show them: value, origin, what may be done. No secret."""

import os
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from dotenv import dotenv_values
from msgspec import Struct

from cortex.base.server_settings import (
    GROUPS,
    KINDS,
    SettingGroup,
    SettingKind,
    Shape,
    as_text,
    choices_of,
    default_of,
    in_words,
    shape_of,
)
from cortex.base.settings import HIDDEN, PREFIX, Settings
from cortex.services.upkeep.server_settings import ServerSettings
from cortex.storage.server_settings import ServerSettingRow

Origin = Literal["environment", ".env", "start", "here", "default"]


class SettingLine(Struct, frozen=True, kw_only=True):
    """One setting. `value`: in force, of a secret only whether it is set; `typed`: what its form begins with.

    `variable`: its name outside. `waits`: what is set holds from the next start on. `by`, `at`: who set it here last.
    """

    name: str
    label: str
    variable: str
    value: str
    typed: str
    default: str
    origin: Origin
    description: str
    shape: Shape = "text"
    choices: tuple[str, ...] = ()
    by: str = ""
    at: datetime | None = None
    can_undo: bool = False
    is_on_trial: bool = False
    waits: bool = False
    note: str = ""

    @property
    def is_given(self) -> bool:
        """Tell whether it is set outside, and so not here."""
        return self.origin not in ("here", "default")


class SettingLines(Struct, frozen=True, kw_only=True):
    """The lines of one group of the page."""

    group: SettingGroup
    lines: Sequence[SettingLine]


class Trial(Struct, frozen=True, kw_only=True):
    """The settings on trial. `ends_at`: when they go back; None while they wait for a restart."""

    labels: Sequence[str]
    ends_at: datetime | None
    address: str


class SettingsView(Struct, frozen=True, kw_only=True):
    """All there is to show. `outside`: those that are never changed here."""

    groups: Sequence[SettingLines]
    outside: Sequence[SettingLine]
    trial: Trial | None

    @property
    def needs_restart(self) -> bool:
        """Tell whether something that is set waits for a restart."""
        return any(line.waits for group in self.groups for line in group.lines)


async def settings_view(service: ServerSettings) -> SettingsView:
    """The settings of the server as they are now."""
    rows, given = await service.rows(), _given_outside()
    lines = {name: _line(service, kind, rows.get(name), given) for name, kind in KINDS.items()}
    outside = [_plain_line(service.settings, name, name, given) for name in sorted({*Settings.model_fields} - {*KINDS})]
    groups = [SettingLines(group=group, lines=[lines[kind.name] for kind in group.kinds]) for group in GROUPS]
    return SettingsView(groups=groups, outside=outside, trial=_trial(service.settings, list(rows.values())))


def _line(
    service: ServerSettings, kind: SettingKind, row: ServerSettingRow | None, given: Collection[str]
) -> SettingLine:
    name = kind.name
    line = _plain_line(service.settings, name, kind.label, given, is_given=service.is_given(name))
    if row is None or line.is_given:
        return line
    is_set, is_secret = row.value is not None, line.shape == "secret"
    typed = "" if is_secret else row.value or line.default
    waits = name in service.waits or (row.is_on_trial and row.trial_ends_at is None)
    return SettingLine(
        **{name: getattr(line, name) for name in line.__struct_fields__}
        | {
            "typed": typed,
            "origin": "here" if is_set else "default",
            "by": row.by or "",
            "at": row.set_at,
            "can_undo": is_secret or row.value != row.before,
            "is_on_trial": row.is_on_trial,
            "waits": waits,
            "note": row.note,
        }
    )


def _plain_line(
    settings: Settings, name: str, label: str, given: Collection[str], *, is_given: bool | None = None
) -> SettingLine:
    """The line of a setting of which nothing is stored. is_given: whether it was set outside, where that is known."""
    value, default, variable = getattr(settings, name), default_of(name), f"{PREFIX}{name.upper()}"
    is_outside = value != default if is_given is None else is_given
    where: Origin = "environment" if variable in os.environ else ".env" if variable in given else "start"
    return SettingLine(
        name=name,
        label=label,
        variable=variable,
        value=_shown(name, value),
        typed="" if name in HIDDEN else as_text(value),
        default=as_text(default),
        origin=where if is_outside else "default",
        description=in_words(Settings.model_fields[name].description or ""),
        shape=shape_of(name),
        choices=choices_of(name),
    )


def _trial(settings: Settings, rows: Sequence[ServerSettingRow]) -> Trial | None:
    tried = [row for row in rows if row.is_on_trial]
    if not tried:
        return None
    values = {row.name: row.value for row in tried}
    port, host = values.get("port") or settings.port, values.get("host") or settings.page_host
    own = f"http://{host}:{port}" if "port" in values or "host" in values else ""
    return Trial(
        labels=[KINDS[row.name].label for row in tried],
        ends_at=min((row.trial_ends_at for row in tried if row.trial_ends_at), default=None),
        address=values.get("public_url") or own,
    )


def _given_outside() -> frozenset[str]:
    env_file = Path(".env")
    return frozenset(name.upper() for name in dotenv_values(env_file)) if env_file.is_file() else frozenset()


def _shown(name: str, value: Any) -> str:  # Any: a setting's value
    if name in HIDDEN:
        return "set" if value else ""
    return ("on" if value else "off") if isinstance(value, bool) else as_text(value)
