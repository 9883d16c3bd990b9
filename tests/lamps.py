"""A made-up outside system, a lamp server, for the tests of what holds for every integration: two ports, a secret."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from cortex.app import Cortex
from cortex.base.errors import ServiceDown
from cortex.ports.integrations import IntegrationKind
from cortex.services.integrations.integrations import Integrations


class LampForm(BaseModel):
    """What the card asks for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = Field(title="Address", description="Such as http://lamps.lan:8123.")
    token: SecretStr = Field(title="Token")
    pin: SecretStr = Field(SecretStr(""), title="PIN")
    level: int = Field(50, ge=0, le=100, title="Level")
    mode: Literal["calm", "bright"] = Field("calm", title="Mode")
    is_strict: bool = Field(default=False, title="Strict")
    rooms: tuple[str, ...] = Field((), title="Rooms")

    @field_validator("address")
    @classmethod
    def _is_web_address(cls, value: str) -> str:
        if not value.startswith("http"):
            raise ValueError("must begin with http")
        return value


@dataclass
class LampServer:
    """What stands behind every client: which token it takes, and what it was asked."""

    token: str = "lamp-token"
    asked: list[str] = field(default_factory=list)
    opened: list["Lamps"] = field(default_factory=list)

    def open(self, form: LampForm, _: str) -> "Lamps":
        self.opened.append(Lamps(form, self))
        return self.opened[-1]


class Lamps:
    """The client of one form."""

    def __init__(self, form: LampForm, server: LampServer) -> None:
        self.form, self.server, self.is_closed = form, server, False

    async def test(self) -> str:
        await self.count()
        return f"4 lamps answer at {self.form.address}."

    async def count(self) -> int:
        self.server.asked.append(self.form.token.get_secret_value())
        if self.form.token.get_secret_value() != self.server.token:
            raise ServiceDown("The lamp server refuses the token. Make a new one there.")
        return 4

    async def close(self) -> None:
        self.is_closed = True


def lamp_kind(server: LampServer, **other: Any) -> IntegrationKind:
    facts: dict[str, Any] = {"name": "lamps", "title": "Lamp server", "ports": ("HomeAssistant",), **other}
    return IntegrationKind(
        about="Switches lamps.", order=1, form=LampForm, open=server.open, place=("address",), **facts
    )


class LampCortex(Cortex):
    """A Cortex that can be set up with lamp servers of four kinds.

    One, several, and one that is given to people alone.
    """

    @cached_property
    def lamp_server(self) -> LampServer:
        """What stands behind them all."""
        return LampServer()

    @cached_property
    def integrations(self) -> Integrations:
        server = self.lamp_server
        several = lamp_kind(server, name="many", title="Lamp servers", ports=("Journals",), has_many=True)
        personal = lamp_kind(server, name="personal", title="Night lamps", ports=(), has_roles=False)
        kinds = (lamp_kind(server), several, personal)
        return Integrations(
            db=self.runtime.db,
            vault=self.vault,
            clock=self.runtime.clock,
            kinds=kinds,
            member_roles=self.roles.for_members,
            all_roles=lambda: self.role_names.of_admins(),
        )
