"""`cortex backup` and `cortex restore`: copies of all that Cortex keeps, and the way back. `cli.py` names them.

A backup is made beside a running daemon. A restore needs HOME for itself, and opens no database of it.
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.hidden import show_hidden
from cortex.base.key_file import stored_key
from cortex.base.serve_lock import serving
from cortex.base.settings import Settings
from cortex.base.start import settings_in_force
from cortex.services.backup import restore as restoring
from cortex.services.backup.restore import ANY, Found, UnvouchedError

KEY_APART = "The secret key is not in it: keep a copy of secret.key, or of CORTEX_SECRET_KEY, in another place."

To = Annotated[str, typer.Option("--to", help="A folder or s3://bucket/prefix instead of CORTEX_BACKUP_TO.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
File = Annotated[str, typer.Argument(help="A file, or the name of a backup that is kept where CORTEX_BACKUP_TO says.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only check it; change nothing.")]
Passphrase = Annotated[
    bool, typer.Option("--passphrase-stdin", help="Read it from the first line; else CORTEX_BACKUP_PASSPHRASE.")
]
Unsigned = Annotated[
    bool, typer.Option("--unsigned", help="Do not ask about a backup whose signature is missing or of another key.")
]
KeyFile = Annotated[str, typer.Option("--key-file", help="The secret.key of the home that was backed up.")]


def backup(to: To = "", as_json: Json = False) -> None:
    """Make a backup of database and files, check it, and keep those of the last day, 7 daily and 4 weekly."""
    name, place, size_bytes, is_encrypted = asyncio.run(_backup(to))
    if as_json:
        facts = {"name": name, "place": place, "size_bytes": size_bytes, "is_encrypted": is_encrypted}
        typer.echo(json.dumps(facts, indent=2))
        return
    sealed = "encrypted" if is_encrypted else "not encrypted (CORTEX_BACKUP_PASSPHRASE is not set)"
    typer.echo(f"{name}, {size_bytes:,} bytes, {sealed}, in {place}\n{KEY_APART}")


def restore(
    file: File,
    dry_run: DryRun = False,
    passphrase_from_input: Passphrase = False,
    key_file: KeyFile = "",
    unsigned: Unsigned = False,
) -> None:
    """Put a backup in place of all that is in HOME. Cortex must not be running."""
    settings = settings_in_force()
    given = sys.stdin.readline().rstrip("\n") if passphrase_from_input else settings.backup_passphrase
    key = _key(Path(key_file)) if key_file else ""
    accepted = ANY if unsigned else ""
    if dry_run:
        typer.echo(f"It can be restored: {_words(asyncio.run(_look(settings, file, given, key, accepted)))}")
        return
    with serving(settings.home):
        if asyncio.run(restoring.finish(settings)):
            typer.echo("An earlier restore was not finished; it is now. Give the command again to restore another.")
            return
        try:
            found = asyncio.run(_restore(settings, file, given, key, accepted))
        except UnvouchedError as doubtful:
            if not sys.stdin.isatty():
                raise UserError(f"{doubtful.message} To restore it all the same: --unsigned.") from doubtful
            typer.echo(doubtful.message)
            if not typer.confirm("Restore it all the same?"):
                typer.echo("Nothing was changed.")
                raise typer.Exit(1) from doubtful
            found = asyncio.run(_restore(settings, file, given, key, doubtful.found.digest))
    typer.echo(f"Restored: {_words(found)}")
    typer.echo("Everybody logs in again. What was running or waiting to be sent when it was made is not taken up.")
    typer.echo(f"What HOME held before is in {settings.home / restoring.REPLACED}; remove it when all is well.")


async def _backup(to: str) -> tuple[str, str, int, bool]:
    """By the settings of the page too, with the tables as they are."""
    async with Cortex.at_rest(settings_in_force(), is_migrating=False) as cortex:
        made = await cortex.backups.make(to)
        return made.name, to or cortex.backups.place, made.size_bytes, cortex.backups.is_encrypted


def _key(path: Path) -> str:
    try:
        key = stored_key(path)
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    if not key:
        raise UserError(f"{str(path)!r} contains no key.")
    return key


async def _look(settings: Settings, file: str, passphrase: str, key: str, accepted: str) -> Found:
    with TemporaryDirectory(prefix=".backup-fetched-", dir=settings.home) as folder:
        found = await restoring.fetched(settings, file, Path(folder))
        return await restoring.look(settings, found, passphrase, key=key, accepted=accepted)


async def _restore(settings: Settings, file: str, passphrase: str, key: str, accepted: str) -> Found:
    with TemporaryDirectory(prefix=".backup-fetched-", dir=settings.home) as folder:
        fetched = await restoring.fetched(settings, file, Path(folder))
        found = await restoring.prepare(settings, fetched, passphrase, key=key, accepted=accepted)
    await restoring.finish(settings)
    return found


def _words(found: Found) -> str:
    signed = f"nobody can vouch for it. {found.doubt}" if found.doubt else "its signature is right."
    made = f"a backup of {found.manifest.made_at}, Cortex {found.manifest.version}, tables at {found.manifest.revision}"
    return show_hidden(f"{made}; {signed}") + f" {found.facts}"
