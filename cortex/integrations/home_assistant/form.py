"""What the card of Home Assistant asks. Opens nothing; `system.py` connects with it."""

from collections.abc import Callable, Collection, Sequence
from typing import Self

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from cortex.base.errors import UserError
from cortex.base.trust import Certificates
from cortex.integrations.home_assistant.allowed import AllowList, allow_list, allow_lists
from cortex.integrations.home_assistant.server import HomeServer, server_at


class HomeAssistantForm(BaseModel):
    """The fields of the card, in their order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = Field(
        title="Address",
        description="As in a browser, such as http://homeassistant.local:8123.",
        max_length=300,
    )
    token: SecretStr = Field(
        title="Long-lived access token",
        description="In Home Assistant: your profile, Security, Long-lived access tokens.",
    )
    verify_certificate: bool = Field(
        default=True,
        title="Check the certificate",
        description="Switch it off only for a self-signed certificate in your own network.",
    )
    ca: Certificates = ""
    allowed: str = Field(
        default="",
        title="What may be seen and controlled",
        description="Empty: everything. Otherwise domains, entity ids, area:Kitchen, floor:Upstairs or label:Guests,"
        " separated by commas; -lock excludes locks.",
        max_length=4_000,
    )
    allowed_for: str = Field(
        default="",
        title="Limits for single people",
        description="By account name: bob: light, area:Kids; eve: -lock. Nobody gets more than what is allowed above.",
        max_length=4_000,
    )
    plain_commands: bool = Field(
        default=True,
        title="Plain commands without a model",
        description='"Turn off the kitchen lights" is done at once, without a model, if its meaning is certain.'
        " Home Assistant is asked what a short message means.",
    )

    @field_validator("address")
    @classmethod
    def _is_address(cls, value: str) -> str:
        return _checked(value, lambda: server_at(value, "token"))

    @field_validator("token")
    @classmethod
    def _is_token(cls, value: SecretStr) -> SecretStr:
        _checked("", lambda: server_at("ha", value.get_secret_value()))
        return value

    @field_validator("allowed")
    @classmethod
    def _is_list(cls, value: str) -> str:
        return _checked(value, lambda: allow_list(value))

    @field_validator("allowed_for")
    @classmethod
    def _are_lists(cls, value: str) -> str:
        return _checked(value, lambda: allow_lists(value))

    @model_validator(mode="after")
    def _is_used(self) -> Self:
        if self.ca and not self.verify_certificate:
            raise ValueError("switch “Check the certificate” on to use your own certificate authority")
        return self

    def server(self) -> HomeServer:
        """Where to connect."""
        token = self.token.get_secret_value()
        return server_at(self.address, token, is_checked=self.verify_certificate, ca=self.ca)

    def people(self) -> Collection[str]:
        """The account names, in small letters, that have a list of their own."""
        return allow_lists(self.allowed_for).keys()

    def allow_lists(self) -> Sequence[AllowList]:
        """Every list on the card: that of all, and those of single persons."""
        return (allow_list(self.allowed), *allow_lists(self.allowed_for).values())

    def allow_list(self, person: str) -> AllowList:
        """Return what this person, by account name, may see and move."""
        general, own = allow_list(self.allowed), allow_lists(self.allowed_for).get(person.casefold())
        return general if own is None else replace(own, within=general)


def _checked(value: str, read: Callable[[], object]) -> str:
    """The value, when it can be read; a ValueError with the same words for pydantic when not."""
    try:
        read()
    except UserError as error:
        raise ValueError(error.message) from None  # the value may be a token
    return value
