"""The server's settings as a person may see them: each with its value, where it comes from and what it is for."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from dotenv import dotenv_values
from msgspec import Struct

from cortex.base.settings import HIDDEN, PREFIX, Settings

Origin = Literal["environment", ".env", "start", "default"]


class SettingLine(Struct, frozen=True, kw_only=True):
    """One setting. `value`: as it is in force; of a secret only whether it is set. `variable`: its name outside."""

    variable: str
    value: str
    origin: Origin
    description: str


def setting_lines(settings: Settings) -> Sequence[SettingLine]:
    """Every setting by name. origin `start`: given on the command line, or made at the start."""
    env_file = Path(".env")
    written = {name.upper() for name in dotenv_values(env_file)} if env_file.is_file() else set()
    given = {name.upper() for name in os.environ}

    def origin(variable: str, value: Any, default: Any) -> Origin:  # Any: a setting's value
        if variable in given:
            return "environment"
        if variable in written:
            return ".env"
        return "default" if value == default else "start"

    return [
        SettingLine(
            variable=(variable := f"{PREFIX}{name.upper()}"),
            value=_shown(name, value := getattr(settings, name)),
            origin=origin(variable, value, field.get_default(call_default_factory=True)),
            description=field.description or "",
        )
        for name, field in sorted(Settings.model_fields.items())
    ]


def _shown(name: str, value: Any) -> str:  # Any: a setting's value
    if name in HIDDEN:
        return "set" if value else ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
