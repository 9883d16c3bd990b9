"""People, how they and their programs get in, what they set, and the audit log. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Serial, Table, owner


class AccountTable(Table):
    """A person. `name_key` is the name folded, so that two that look alike cannot both exist."""

    __tablename__ = "accounts"
    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    name_key: Mapped[str] = mapped_column(unique=True)
    rank: Mapped[str]
    password_hash: Mapped[str | None]
    time_zone: Mapped[str]
    is_active: Mapped[bool] = mapped_column(default=True)
    created_at: Mapped[datetime]


class LoginTable(Table):
    """A signed-in browser; the token itself is never stored."""

    __tablename__ = "logins"
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(unique=True)
    address: Mapped[str]
    agent: Mapped[str]
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    confirmed_until: Mapped[datetime | None]


class SetupLinkTable(Table):
    """A one-time link: without an account it makes the first admin, with one it does for that account what it is for.

    `purpose`: `password` sets one, `device` logs another device in.
    """

    __tablename__ = "setup_links"
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[str | None] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    purpose: Mapped[str] = mapped_column(server_default="password")


class AttemptTable(Table):
    """The count of late sign-in tries by one name or address; the next try is heard from `not_before` on."""

    __tablename__ = "attempts"
    key: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
    last_at: Mapped[datetime]
    not_before: Mapped[datetime]


class HaltTable(Table):
    """Work that is stopped until it is lifted. `scope`: `everybody`, `outward`, or the id of an account."""

    __tablename__ = "halts"
    scope: Mapped[str] = mapped_column(primary_key=True)
    by_id: Mapped[str]
    who: Mapped[str]
    at: Mapped[datetime]


class AuditTable(Table):
    """A link of the audit chain; the database itself refuses to change or delete one."""

    __tablename__ = "audit"
    number: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=False)
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    subject: Mapped[str]
    detail: Mapped[str]
    previous_hash: Mapped[str]
    hash: Mapped[str]


class PreferenceTable(Table):
    """A value set in the browser, as JSON under `value`."""

    __tablename__ = "preferences"
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime]


class SecretTable(Table):
    """A sealed secret; only its name is ever shown."""

    __tablename__ = "secrets"
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    ciphertext: Mapped[bytes]
    updated_at: Mapped[datetime]


class ServerSecretTable(Table):
    """A sealed secret of the server itself, such as the keys by which push services know it."""

    __tablename__ = "house_secrets"
    name: Mapped[str] = mapped_column(primary_key=True)
    ciphertext: Mapped[bytes]
    updated_at: Mapped[datetime]


class ServerSettingTable(Table):
    """A setting of the server that was changed on the page, as it would be written in the environment.

    `value`, `before`: now and ahead of the last change, NULL = as without the page; of a secret only that it is there.
    `is_on_trial`: goes back to `before` at `trial_ends_at` unless confirmed; NULL there = waits for a restart, and does
    not hold yet. `note`: why it went back, or cannot hold.
    """

    __tablename__ = "server_settings"
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str | None]
    before: Mapped[str | None]
    set_by: Mapped[str]
    set_at: Mapped[datetime]
    is_on_trial: Mapped[bool]
    trial_ends_at: Mapped[datetime | None]
    note: Mapped[str]


class ApiTokenTable(Table):
    """One program's token: `digest` of the token, `hint` its last characters. `tools` null: all of the role's.

    `is_own_words`: what the program sends was typed by its person. `is_pass_through`: it reaches the models alone.
    `warned_at`: when they were told that it ends soon.
    """

    __tablename__ = "api_tokens"
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    role: Mapped[str]
    tools: Mapped[tuple[str, ...] | None]
    limit_tokens: Mapped[int | None]
    limit_usd: Mapped[float | None]
    per_minute: Mapped[int]
    wait_s: Mapped[int]
    is_own_words: Mapped[bool]
    is_pass_through: Mapped[bool]
    made_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    warned_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]


class ApiRequestTable(Table):
    """One request of a program. It names turn and conversation without hanging on them: what was spent stays.

    `thread`: a digest of all that was said up to its answer, "" before that was given. `parameters`: what tunes the
    answer, by name, as JSON texts.
    """

    __tablename__ = "api_requests"
    __table_args__ = (
        Index("ix_api_requests_token_id_at", "token_id", "at"),
        Index("ix_api_requests_token_id_thread", "token_id", "thread"),
    )
    turn_id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    token_id: Mapped[str] = mapped_column(ForeignKey("api_tokens.id", ondelete="CASCADE"))
    conversation_id: Mapped[str]
    model: Mapped[str]
    thread: Mapped[str] = mapped_column(default="")
    parameters: Mapped[dict[str, Any]]
    at: Mapped[datetime]
