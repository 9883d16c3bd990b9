"""Notes in the audit log that a backup was put back, and whether its signature vouched for it.

`restore.py` lays the facts into the new HOME, in the one step that decides; whoever opens that HOME next writes the row
and removes them. A kill in between leaves them: the row is looked for before it is written.
"""

import asyncio
import json
from pathlib import Path

from msgspec import Struct

from cortex.base import private
from cortex.base.errors import ConfigError
from cortex.base.ids import new_id
from cortex.base.record import as_dict
from cortex.services.backup.archive import Manifest
from cortex.storage.audit import AuditFilter, AuditRepository
from cortex.storage.audit_head import AuditHead
from cortex.storage.db import Database, Opener
from cortex.storage.integrations import PLUGIN, IntegrationsRepository
from cortex.storage.restored import RESTORED, RESTORED_UNSIGNED

FILE = "restored.json"


class Restored(Struct, frozen=True, kw_only=True):
    """One restore. `doubt`: why nobody can vouch for the backup, or ""; `is_same_key`: by its own key."""

    id: str
    made_at: str
    version: str
    doubt: str
    is_same_key: bool


def lay(folder: Path, manifest: Manifest, *, doubt: str, is_same_key: bool) -> None:
    """Put the facts into the home that is about to be in force."""
    facts = Restored(
        id=new_id(), made_at=manifest.made_at, version=manifest.version, doubt=doubt, is_same_key=is_same_key
    )
    private.write_beside(folder / FILE, json.dumps(as_dict(facts)).encode())


async def note(home: Path, db: Database, head: AuditHead) -> None:
    """Write the row of a restore that is not in the log yet. Where nobody vouches, the log's head begins with it."""
    path = home / FILE
    try:
        facts = Restored(**json.loads(await asyncio.to_thread(path.read_text)))
    except FileNotFoundError:
        return
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{str(path)!r}, which says what was restored last, is damaged: remove it.") from error
    action = RESTORED_UNSIGNED if facts.doubt else RESTORED
    async with db.transaction() as repository:
        audit = repository(AuditRepository)
        written = await audit.list(1, subject=facts.id, which=AuditFilter(kind=action))
        row = written[0] if written else await audit.add("command", action, facts.id, as_dict(facts))
        await _revoke_plugins(repository)
    if facts.doubt:
        _, newest = await db.repository(AuditRepository).heads(row.number)
        await asyncio.to_thread(head.start, newest)
    await asyncio.to_thread(path.unlink, missing_ok=True)


async def _revoke_plugins(repository: Opener) -> None:
    """Have each plug-in asked about again: one may have been revoked since the backup, or never been allowed here."""
    integrations = repository(IntegrationsRepository)
    for row in await integrations.list():
        if row.kind == PLUGIN:
            await integrations.remove(row.kind, row.name)
            await repository(AuditRepository).add("command", "plugin.revoked", row.name, {"by": "restore"})
