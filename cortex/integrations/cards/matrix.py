"""The card of Matrix: people write to Cortex there."""

import re

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from cortex.base import scan
from cortex.base.web_address import bare_address
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind
from cortex.ports.messengers import Messenger

NAME = "matrix"
EXAMPLE = "https://matrix.example.org"
_USER = re.compile(r"@[!-9;-~]{1,200}:[!-~]{1,200}")
_ROOM = re.compile(r"![!-~]{1,254}")


class MatrixForm(BaseModel):
    """The fields that an admin fills in on the card."""

    address: str = Field(
        title="Homeserver",
        description=f"Its address, such as {EXAMPLE}. It may be inside your network.",
        max_length=500,
    )
    user: str = Field(
        title="User",
        description="An account of Cortex's own there, such as @cortex:example.org.",
        max_length=255,
    )
    password: SecretStr = Field(
        SecretStr(""), title="Password", description="Of that account. Leave it empty if you enter an access token."
    )
    token: SecretStr = Field(
        SecretStr(""),
        title="Access token",
        description="In place of the password, for servers that know no logins by password.",
    )
    groups: str = Field(
        "",
        title="Groups",
        description="Ids of the rooms in which Cortex answers, without tools or memory, when it is addressed. Address "
        "it in a room, and it says the room's id. Empty: none.",
        max_length=2000,
    )

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return bare_address(text, EXAMPLE)

    @field_validator("user")
    @classmethod
    def _is_user(cls, text: str) -> str:
        if not _USER.fullmatch(text.strip()):
            raise ValueError("a Matrix user is written @name:server, such as @cortex:example.org")
        return text.strip()

    @field_validator("groups")
    @classmethod
    def _are_rooms(cls, text: str) -> str:
        ids = text.replace(",", " ").split()
        if not all(map(_ROOM.fullmatch, ids)):
            raise ValueError("the id of a room begins with !, such as !abcDEF:example.org")
        return " ".join(dict.fromkeys(ids))

    @model_validator(mode="after")
    def _has_a_key(self) -> "MatrixForm":
        if not self.password.get_secret_value() and not self.token.get_secret_value().strip():
            raise ValueError("enter the password of the account, or an access token")
        return self


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name=NAME,
        title="Matrix",
        about="People write to Cortex by Matrix (Element and others), and are notified there.",
        order=47,
        opens=(Messenger,),
        form=MatrixForm,
        open=lambda form, _: scan.load("cortex.integrations.matrix.client").MatrixAccount(form, host.logins(NAME)),
        place=("address", "user"),
        beside=("login",),
        has_roles=False,
        note="Each person links their account under Account, Messengers. Cortex reads and writes no encrypted rooms: "
        "it leaves them and opens one that is not. Whoever runs the homeserver can read these.",
    )
