"""The secrets of integrations: sealed by field, opened only to fill a form for a client."""

import asyncio

from msgspec import Struct
from pydantic import BaseModel

from cortex.base.crypto import Vault
from cortex.ports.integrations import IntegrationKind
from cortex.services.integrations.forms import sealed, secrets_of
from cortex.storage.db import Database
from cortex.storage.secrets import ServerSecretsRepository


class SealedForms(Struct, frozen=True, kw_only=True):
    """The secret fields of every system, in the table of the server's secrets."""

    db: Database
    vault: Vault

    def names(self, kind: IntegrationKind, name: str) -> tuple[str, ...]:
        """Return what the system's secrets are called there."""
        return tuple(_called(kind, name, field) for field in secrets_of(kind.form))

    def names_beside(self, kind: IntegrationKind, name: str) -> tuple[str, ...]:
        """Return what is called so of what its client keeps itself."""
        return tuple(_called(kind, name, beside) for beside in kind.beside)

    async def sealed(self, kind: IntegrationKind, name: str, form: BaseModel) -> dict[str, bytes]:
        """The secrets of a form as they are stored, by what they are called."""
        given = sealed(form).items()
        return {_called(kind, name, field): await asyncio.to_thread(self.vault.seal, value) for field, value in given}

    async def kept_names(self, kind: IntegrationKind, name: str) -> tuple[str, ...]:
        """The secret fields that are stored."""
        found = [(field, await self._stored(kind, name, field)) for field in secrets_of(kind.form)]
        return tuple(field for field, ciphertext in found if ciphertext is not None)

    async def kept(self, kind: IntegrationKind, name: str) -> dict[str, str]:
        """The stored secrets, opened, by field. ConfigError where the server's secret key is another one now."""
        found = [(field, await self._stored(kind, name, field)) for field in secrets_of(kind.form)]
        return {field: await asyncio.to_thread(self.vault.unseal, one) for field, one in found if one is not None}

    async def _stored(self, kind: IntegrationKind, name: str, field: str) -> bytes | None:
        return await self.db.repository(ServerSecretsRepository).get(_called(kind, name, field))


def _called(kind: IntegrationKind, name: str, field: str) -> str:
    return f"integration:{kind.name}:{name}:{field}"
