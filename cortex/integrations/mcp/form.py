"""What an admin enters for an MCP server: a program on this machine, or an address; what it may, and what it is for."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, model_validator

from cortex.base.web_address import web_place

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # the name of a header, RFC 9110
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class McpForm(BaseModel):
    """One of `command` and `address` is given."""

    about: str = Field(
        default="",
        title="What it is good for",
        description="In a few words, as you would explain it to a person. Models find its tools by them.",
        max_length=60,
    )
    command: str = Field(
        default="",
        title="Command",
        description="For a server on this machine: the program with its arguments, as in a shell. It runs in the "
        "sandbox, without shell features such as pipes and variables.",
        max_length=4_000,
    )
    environment: SecretStr = Field(
        default=SecretStr(""),
        title="Environment of the command",
        description="As in a shell: NAME=value OTHER='two words'. It gets nothing of Cortex's own.",
    )
    readable: tuple[str, ...] = Field(
        default=(), title="Folders that the command may read", description="Absolute paths, such as /srv/documents."
    )
    writable: tuple[str, ...] = Field(
        default=(),
        title="Folders that the command may change",
        description="Absolute paths. It always has its own folder.",
    )
    has_network: bool = Field(
        default=False,
        title="The command may use the network",
        description="Off: no network. On: it can reach whatever this machine reaches, including this machine, and can "
        "send out everything it gets.",
    )
    address: str = Field(
        default="",
        title="Address",
        description="For a remote server (streamable HTTP), such as https://mcp.example.org/mcp.",
        max_length=500,
    )
    headers: SecretStr = Field(
        default=SecretStr(""),
        title="Headers",
        description="Sent with each request to the address, as Name='value', such as Authorization='Bearer …'.",
    )
    has_login: bool = Field(
        default=False,
        title="It needs a login (OAuth)",
        description="Save, then log in on the page of its tools.",
    )
    is_private: bool = Field(
        default=False,
        title="What it reads is private",
        description="Then nothing a chat has read from it is sent elsewhere without your approval. A command without"
        " network access is always private.",
    )
    timeout_s: float = Field(default=60.0, title="Seconds that a call may take", ge=1, le=140)

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if bool(self.command) == bool(self.address):
            raise ValueError("enter either a command or an address")
        if self.address:
            self._check_address()
        if self.command and not self.argv:
            raise ValueError("the command names no program")
        self.variables  # noqa: B018 - they raise
        self.header_values  # noqa: B018
        for folder in (*self.readable, *self.writable):
            if not folder.startswith("/") or ".." in Path(folder).parts or len(Path(folder).parts) < 2:
                raise ValueError(f"{folder!r} is not an absolute path; write it like /srv/documents")
        return self

    def _check_address(self) -> None:
        web_place(self.address)
        parts = urlsplit(self.address)
        if parts.username is not None or parts.fragment:
            raise ValueError("this is not a web address, or it contains a name or password")

    @property
    def argv(self) -> list[str]:
        """The program and its arguments. ValueError for an open quotation mark."""
        return shlex.split(self.command)

    @property
    def variables(self) -> Mapping[str, str]:
        """The command's environment."""
        return _assignments(self.environment, VARIABLE, "environment")

    @property
    def header_values(self) -> Mapping[str, str]:
        """The headers of each request."""
        found = _assignments(self.headers, TOKEN, "headers")
        if any(not value.isprintable() for value in found.values()):
            raise ValueError("headers: a value contains characters that cannot be sent")
        return found

    @property
    def host(self) -> tuple[str, int]:
        """Where the address leads."""
        parts = urlsplit(self.address)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    @property
    def place(self) -> str:
        """The host that gets what is sent to it; "" where it cannot leave this machine."""
        if self.address:
            return self.host[0]
        return "the network" if self.has_network else ""

    @property
    def reads_private(self) -> bool:
        """Tell whether what it reads is private data."""
        return self.is_private or not self.place


def _assignments(secret: SecretStr, names: re.Pattern[str], what: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        parts = shlex.split(secret.get_secret_value())
    except ValueError:
        raise ValueError(f"{what}: a quotation mark is not closed") from None
    for part in parts:
        name, sign, value = part.partition("=")
        if not sign or not names.fullmatch(name):
            raise ValueError(f"{what}: write each as NAME=value, with quotation marks around a value that has spaces")
        found[name] = value
    return found
