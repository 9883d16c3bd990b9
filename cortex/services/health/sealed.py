"""Whether the secret key is the one under which the stored secrets were sealed, and what to do where it is not.

Asked by `app.py` before anything is sealed, by the doctor, and by `cortex secrets`. Opens nothing.
"""

import asyncio
import logging
import shlex
from collections.abc import Sequence

from msgspec import Struct

from cortex.base import key_file
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, NotFound, UserError
from cortex.base.serve_lock import is_served
from cortex.base.settings import Settings
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.secrets import AllSecretsRepository, SealedRow

SERVER = "server"
NAMED = 20  # how many secrets a sentence names

log = logging.getLogger(__name__)


class SealedValue(Struct, frozen=True, kw_only=True):
    """A stored secret: `person/what` or `server/what`, and whether the present key opens it."""

    name: str
    opens: bool
    row: SealedRow


class SealedValues(Struct, frozen=True, kw_only=True):
    """Looks through the stored secrets of everybody."""

    settings: Settings
    db: Database

    async def list(self) -> Sequence[SealedValue]:
        """All of them, the server's own first."""
        vault = Vault(self.settings.secret_key)
        rows = await self.db.repository(AllSecretsRepository).list()
        return [
            SealedValue(name=f"{row.owner or SERVER}/{row.name}", opens=vault.fits(row.ciphertext), row=row)
            for row in rows
        ]

    async def lost(self) -> str:
        """Return what to say where no stored secret can be opened, or some cannot; "" when all is well."""
        values = await self.list()
        closed = [value.name for value in values if not value.opens]
        if not closed:
            return ""
        names = ", ".join(closed[:NAMED]) + (f" and {len(closed) - NAMED} more" if len(closed) > NAMED else "")
        return f"{self._why()}, so {len(closed)} of {len(values)} stored secrets cannot be opened: {names}."

    async def key(self) -> str:
        """The key in force, made where there is none yet.

        ConfigError, with nothing made, where secrets are stored and not one of them opens: a new key would hide that.
        """
        values = await self.list()
        if values and not any(value.opens for value in values):
            raise ConfigError(f"{await self.lost()} {ways_out([value.name for value in values])}")
        if any(not value.opens for value in values):
            log.warning("secrets: %s", await self.lost())
        if self.settings.secret_key:
            return self.settings.secret_key
        return await asyncio.to_thread(key_file.made_key, self.settings.key_file)

    async def give_up(self, names: Sequence[str]) -> None:
        """Delete secrets that cannot be opened any more, all of them or none.

        NotFound for an unknown name; UserError for one that still opens, and while the server runs, which may know
        the key.
        """
        if is_served(self.settings.home):
            raise UserError("Cortex is running and may still have the key: stop it first.")
        values = {value.name: value for value in await self.list()}
        for name in names:
            if name not in values:
                raise NotFound(f"There is no stored secret {name!r}: `cortex secrets list` names them.")
            if values[name].opens:
                raise UserError(f"{name!r} can be opened with the current key, so it was kept. Nothing was deleted.")
        has_right_key = any(value.opens for value in values.values())  # without it no row of the audit log would fit
        if has_right_key:
            await self.db.migrate()
        async with self.db.transaction() as repository:
            for name in dict.fromkeys(names):
                await repository(AllSecretsRepository).remove(values[name].row)
                if has_right_key:
                    await repository(AuditRepository).add("command", "secret.given_up", name)

    def _why(self) -> str:
        if self.settings.secret_key:
            return "The secret key is not the one that the stored secrets were sealed with"
        return f"The secret key is lost ({str(self.settings.key_file)!r} is missing)"


def ways_out(names: Sequence[str]) -> str:
    """Return what to do: the key back, or the secrets given up by name."""
    listed = " ".join(map(shlex.quote, names)) if len(names) <= NAMED else "NAME… (`cortex secrets list` has them)"
    return (
        f"Put the {key_file.NAME} back that they were sealed with, or set CORTEX_SECRET_KEY to it; or give them up and "
        f"enter them anew later: cortex secrets give-up {listed}"
    )
