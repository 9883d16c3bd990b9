"""`cortex settings`: every setting with its value and origin, and the way back for whoever is locked out by one."""

import json
import os
import signal
from typing import Annotated

import typer

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.serve_lock import is_served, server_of
from cortex.base.server_settings import kind_of
from cortex.base.settings import PREFIX
from cortex.commands.at_rest import at_rest
from cortex.services.upkeep.setting_lines import SettingLine, settings_view

ORIGINS = {"here": "page", "start": "command", "default": "default"}

settings = typer.Typer(help="The server's settings: list them, unset one.", invoke_without_command=True)


@settings.callback()
def list_settings(
    called: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """List every setting with its value and where it comes from: environment, .env, page or default."""
    if called.invoked_subcommand:
        return
    lines = sorted(at_rest(_lines), key=lambda line: line.variable)
    if as_json:
        rows = [{"name": one.variable, "value": one.value, "origin": _origin(one)} for one in lines]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for one in lines:
        typer.echo(f"{one.variable:<34} {_origin(one):<12} {one.value}".rstrip())


@settings.command("unset")
def unset(name: Annotated[str, typer.Argument(help="As in the list, with or without CORTEX_.")]) -> None:
    """Take back what was set on the page: the setting is as without it. A running server restarts."""
    typer.echo(at_rest(lambda cortex: _unset(cortex, name)))


async def _lines(cortex: Cortex) -> list[SettingLine]:
    view = await settings_view(cortex.server_settings)
    return [*view.outside, *(line for group in view.groups for line in group.lines)]


async def _unset(cortex: Cortex, name: str) -> str:
    variable = f"{PREFIX}{kind_of(name).name.upper()}"
    if not await cortex.server_settings.unset(None, name):
        raise UserError(f"{variable} was not set on the page; `cortex settings` says where it comes from.")
    pid = server_of(cortex.settings.home) if is_served(cortex.settings.home) else None
    if pid is None:
        return f"{variable} is unset. It applies at the next start."
    os.kill(pid, signal.SIGUSR2)
    return f"{variable} is unset. The server restarts as soon as what runs has ended, within a minute."


def _origin(line: SettingLine) -> str:
    return ORIGINS.get(line.origin, line.origin)
