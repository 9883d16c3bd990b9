"""Asks a model's server how much context it gives the model: `/props`, `/api/show`, `/v1/models`, as its kind has it.

Used when a model is saved or tested, and where a server refuses a request as too long without saying what it takes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cortex.base.address import AddressPolicy
from cortex.base.errors import ConfigError, ProviderError
from cortex.base.model import ModelEntry
from cortex.base.user import User
from cortex.ports.model_lists import AskList, ModelServer
from cortex.services.models.files import FileModel
from cortex.services.models.store import RegistryStore

REFUSED_S = 5.0  # a turn waits for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """`ask`: for a server's list, None where nothing is asked. `policy`: the rule for this user, address and owner."""

    store: RegistryStore
    ask: AskList | None
    policy: Callable[[User, str, str], AddressPolicy]

    async def told(self, user: User, model: ModelEntry) -> int | None:
        """The tokens of context that the server says; None where it does not say it."""
        tokens = (await self.said(user, model)).get("told_tokens")
        return tokens if isinstance(tokens, int) else None

    async def said(
        self, user: User, model: FileModel | ModelEntry, limit_s: float = REFUSED_S, key: str | None = None
    ) -> dict[str, Any]:
        """What the server says, as fields of the model: its context, what server it is. `key`: None for the stored."""
        if self.ask is None:
            return {}
        owner_id = model.owner_id if isinstance(model, ModelEntry) else ""
        try:
            key = key if key is not None else await self.store.key(owner_id or user.id, model.secret)
            server = ModelServer(
                provider=model.provider, base_url=model.base_url, ca=model.ca, key=key or "", engine=model.engine,
                policy=self.policy(user, model.base_url, owner_id), limit_s=limit_s,
            )  # fmt: skip
            found = await self.ask(server)
        except (ProviderError, ConfigError):
            return {}
        tokens = next((one.context_tokens for one in found.models if one.id == model.model), None)
        return {name: value for name, value in (("told_tokens", tokens), ("engine", found.engine)) if value}
