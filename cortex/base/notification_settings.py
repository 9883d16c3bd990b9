"""The settings by which people are reached: notifications and the mail server. A part of `Settings`, read with it."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode

from cortex.base.contact import mail_address, push_subject


def _split(value: object) -> object:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


def _check_places(value: tuple[str, ...]) -> tuple[str, ...]:
    if any(not re.fullmatch(r"[^\s:/]+:\d{1,5}", word) for word in value):
        raise ValueError("write host:port, several with commas between")
    return value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Places = Annotated[Words, AfterValidator(_check_places)]


class NotificationSettings(BaseSettings):
    """Where notices may go, and through which server mails leave."""

    notify_hosts: Places = Field(
        (), description="Servers in your network that notifications can be sent to: host:port, comma separated."
    )
    push_subject: str = Field(
        "",
        description="Contact for push services: mailto:you@example.org or https://your.page. Empty: "
        "made from this server's name or a mail address of its own.",
    )
    smtp_host: str = Field("", description="Mail server for notifications and the tool email_send.")
    smtp_port: int = Field(
        0, ge=0, le=65535, description="Port of the mail server; 0: 587, or 465 for tls, 25 for none."
    )
    smtp_user: str = Field("", description="User name for the mail server; empty: no login.")
    smtp_password: str = Field("", repr=False, description="Password for the mail server.")
    smtp_from: str = Field("", description="Sender address of e-mails; empty: CORTEX_SMTP_USER.")
    smtp_security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="Encryption: starttls, tls or none. none allows a login only on this machine."
    )
    smtp_ca_file: str = Field(
        "", description="Certificate file to trust in addition to the usual ones, for your own mail server."
    )

    mail_servers: Places = Field((), description="Mail servers (IMAP) in your network: host:port, comma separated.")
    google_client_id: str = Field("", description="Logins by Google for mail: the client id of your own project.")
    google_client_secret: str = Field("", repr=False, description="Logins by Google for mail: its client secret.")
    microsoft_client_id: str = Field("", description="Logins by Microsoft for mail: the id of your own application.")

    @field_validator("push_subject")
    @classmethod
    def _contact(cls, value: str) -> str:
        return push_subject(value) if value.strip() else ""

    @field_validator("smtp_from")
    @classmethod
    def _sender(cls, value: str, info: ValidationInfo) -> str:
        if value.strip():
            return mail_address(value)
        if not info.data.get("smtp_host"):
            return ""
        try:
            return mail_address(info.data.get("smtp_user", ""))
        except ValueError as error:
            raise ValueError("is needed with CORTEX_SMTP_HOST: the address that mails come from") from error

    @field_validator("smtp_host")
    @classmethod
    def _host(cls, value: str) -> str:
        if re.search(r"[\s/@]", value.strip()):
            raise ValueError("write the name of a host, without https:// and port")
        return value.strip().strip("[]").lower()

    @field_validator("smtp_ca_file")
    @classmethod
    def _file(cls, value: str) -> str:
        if value and not Path(value).is_file():
            raise ValueError("is no file here")
        return value

    @field_validator("smtp_security")
    @classmethod
    def _password_stays_here(cls, value: str, info: ValidationInfo) -> str:
        if value == "none" and info.data.get("smtp_user") and not is_this_machine(info.data.get("smtp_host", "")):
            raise ValueError("would send the password readable; use starttls or tls")
        return value

    @property
    def notify_places(self) -> frozenset[tuple[str, int]]:
        """`notify_hosts` as pairs of host and port."""
        pairs = (word.partition(":") for word in self.notify_hosts)
        return frozenset((host.lower(), int(port)) for host, _, port in pairs)


def is_this_machine(host: str) -> bool:
    """Tell whether the host is this machine by its loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
