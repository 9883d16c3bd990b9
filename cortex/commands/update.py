"""`cortex update`: to the newest version of the checkout's remote or to a wheel, and back. Works beside the daemon."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from cortex.base.errors import UserError
from cortex.base.record import as_dict
from cortex.base.serve_lock import is_served, server_of
from cortex.base.settings import Settings
from cortex.base.start import settings_in_force
from cortex.base.versions import Chosen
from cortex.ports.system import Upgrade
from cortex.services.backup.backups import Backups
from cortex.services.upkeep.updates import NO_WAY_BACK, Updates

CHANGES = 30

Wheel = Annotated[str, typer.Option("--wheel", help="A wheel of Cortex, in place of what the checkout's remote has.")]
Preview = Annotated[bool, typer.Option("--preview", help="Only show what would change.")]
Back = Annotated[bool, typer.Option("--back", help="Go back to the version before the last update.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print what would change as JSON for programs, and do nothing.")]


def update(
    wheel: Wheel = "", preview: Preview = False, back: Back = False, yes: Yes = False, as_json: Json = False
) -> None:
    """Update Cortex: show what would change, try it on a copy, make a backup, swap, restart."""
    settings = settings_in_force()
    updates = Updates(settings=settings, backups=Backups(settings))
    if wheel and back:
        raise UserError("Use either --wheel or --back.")
    if as_json or preview or not (wheel or back):
        found = asyncio.run(updates.preview())
        if as_json:
            typer.echo(json.dumps(as_dict(found), ensure_ascii=False, indent=2))
            return
        _show(found)
        if preview or not found.version:
            return
    question = f"Install {Path(wheel).name or 'it'}?"
    if back:
        earlier = updates.earlier()
        if not earlier:
            raise UserError(NO_WAY_BACK)
        question = f"Go back to Cortex {earlier}? What was written since the update stays."
    if not yes and not _agrees(question):
        typer.echo("Nothing was changed.")
        return
    chosen = asyncio.run(updates.go_back(typer.echo) if back else updates.install(typer.echo, _given(wheel)))
    _restart(settings, chosen)


def _given(wheel: str) -> Path | None:
    return Path(wheel).absolute() if wheel else None


def _agrees(question: str) -> bool:
    if not sys.stdin.isatty():
        raise UserError("There is no terminal to ask on: use --yes or --preview.")
    return typer.confirm(question)


def _show(found: Upgrade) -> None:
    if not found.version:
        typer.echo(f"Cortex {found.current} is the newest version.")
        return
    typer.echo(f"Cortex {found.current} can be updated to {found.version}:")
    for change in found.changes[:CHANGES]:
        typer.echo(f"- {change}")
    if len(found.changes) > CHANGES:
        typer.echo(f"- ... and {len(found.changes) - CHANGES} more")
    typer.echo(f"Changes to the tables: {found.migrations}.")


def _restart(settings: Settings, chosen: Chosen) -> None:
    """Ask the daemon that serves this HOME to restart; where there is none, the next start does it."""
    what = f"Cortex goes back to {chosen.before_label}" if chosen.goes_back else f"Cortex {chosen.label} is chosen"
    pid = server_of(settings.home) if is_served(settings.home) else None
    if pid is None:
        typer.echo(f"{what}: it happens at the next start.")
        return
    os.kill(pid, signal.SIGUSR2)
    typer.echo(f"{what}: the daemon restarts as soon as what runs has ended, within a minute.")
