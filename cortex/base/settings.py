"""The settings of the whole server, read once from the environment and `.env` (prefix CORTEX_).

A wrong value stops the start with one line that names it (`ConfigError`). `python -m cortex.base.settings` prints
`.env.example`, which is generated from the descriptions here and checked by a test.
"""

import difflib
import ipaddress
import os
import re
import sys
import zoneinfo
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from dotenv.parser import parse_stream
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import SettingsConfigDict

from cortex.base import disk_faults, key_file
from cortex.base.errors import ConfigError
from cortex.base.form_words import what_is_wrong
from cortex.base.notification_settings import NotificationSettings, Places, Words, is_this_machine
from cortex.base.web_address import host_ports, web_place

PREFIX = "CORTEX_"
MAX_ROUNDS_CAP = 25
_SECRET = (
    "secret_key",
    "brave_api_key",
    "smtp_password",
    "google_client_secret",
    "metrics_token",
    "backup_passphrase",
    "backup_s3_secret",
)
HIDDEN = (*_SECRET, "database_url", "engine_url")
JOBS_PER_PROCESSOR, JOBS_MOST = 8, 32


class Settings(NotificationSettings):
    """The settings of an administrator. Made by `load_settings`; frozen from then on."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True)

    host: str = Field(
        "127.0.0.1",
        description="Address to listen on. Others than loopback need CORTEX_PUBLIC_URL, or CORTEX_ALLOW_PLAIN_HTTP.",
    )
    port: int = Field(8484, ge=0, le=65535, description="Port to listen on; 0 chooses a free one.")
    public_url: str = Field(
        "", description="The address people open when Cortex is behind a proxy, such as https://cortex.example.org."
    )
    trusted_proxies: Words = Field(
        (), description="Proxies whose X-Forwarded headers are trusted: addresses, comma separated."
    )
    allowed_hosts: Words = Field((), description="Further host names of the page, comma separated.")
    allow_plain_http: Literal["", "lan"] = Field(
        "", description="lan: serve without HTTPS on a network you trust. Passwords are sent unencrypted."
    )
    connections_per_address: int = Field(
        256,
        ge=1,
        description="Connections per address without a complete request or a login; beyond this, the oldest is closed.",
    )
    streams_per_person: int = Field(
        64, ge=1, description="Pages with live updates that one person can have open at once."
    )
    container: bool = Field(
        default=False,
        description="Set by the image: Cortex runs in a container whose port is published on 127.0.0.1 only.",
    )
    home: Path = Field(Path("home"), description="The folder for all data: database, keys, each person's files.")
    database_url: str = Field(
        "",
        description="Database. Empty: SQLite in HOME/cortex.db. Otherwise postgresql://user:password@host/name; "
        "run `make postgres` first.",
    )
    engine_url: str = Field(
        "", description="Database of running turns. Empty: HOME/engine.db, or the main database if that is PostgreSQL."
    )
    secret_key: str = Field(
        "", repr=False, description="Encrypts stored secrets. Empty: created once in HOME/secret.key (mode 0600)."
    )
    max_rounds: int = Field(
        5,
        ge=1,
        le=MAX_ROUNDS_CAP,
        description=f"Most model calls per message, up to {MAX_ROUNDS_CAP}; roles and models can override it.",
    )
    jobs_at_once: int = Field(
        0,
        ge=0,
        le=200,
        description="Runs of jobs at the same time in one process; others wait in line. 0: 8 a processor, at most 32.",
    )
    local_requests_at_once: int = Field(
        4,
        ge=1,
        le=200,
        description="Requests of jobs and agents at the same time to one model server in your network: its slots.",
    )
    time_zone: str = Field("UTC", description="Time zone of new accounts, an IANA name such as Europe/Berlin.")
    allowed_folders: Words = Field(
        (), description="Further folders that admins' file and git tools can use: name=/path, comma separated."
    )
    model_hosts: Places = Field(
        (), description="Model servers in your network that every account can use: host:port, comma separated."
    )
    calendar_servers: Places = Field((), description="Calendar servers in your network: host:port, comma separated.")
    searxng_url: str = Field("", description="Web search: address of a SearXNG instance.")
    brave_api_key: str = Field("", repr=False, description="Web search: an API key for Brave Search.")
    ddgs: bool = Field(default=False, description="Web search: use DuckDuckGo, without a key; run `make ddgs` first.")
    encoder_folder: str = Field(
        "",
        description="Folder with a sentence model (model.onnx, tokenizer.json); needs the extra `semantic`. Empty: "
        "HOME/encoder, if `cortex encoder install` was run.",
    )
    metrics_token: str = Field(
        "",
        repr=False,
        description="Turns on /metrics for Prometheus (Authorization: Bearer …). Empty: off.",
    )
    otel_endpoint: str = Field(
        "",
        description="Where OpenTelemetry traces go (OTLP over HTTP), such as http://collector:4318; needs the "
        "extra `otel`.",
    )
    plans_kept_days: int = Field(
        0, ge=0, description="Days that traces keep how tools were chosen; 0: as long as the conversation."
    )
    query_results_kept_days: int = Field(
        30,
        ge=0,
        description="Days that CSV files of database results are kept in query-results/, at most 200 per person; "
        "0: no age limit.",
    )
    upload_mb: int = Field(20, ge=1, le=2_000, description="Largest uploaded file, in MB.")
    files_mb: int = Field(1_000, ge=1, description="All uploaded files of one person, in MB.")
    workspace_mb: int = Field(
        4_000, ge=10, description="A person's whole folder, in MB; a shell command that exceeds it is stopped."
    )
    workspace_files: int = Field(200_000, ge=100, description="Most files and folders in a person's folder.")
    model_titles: bool = Field(
        default=True,
        description="Let a model name a chat after its first answer; not on a local server that answers one request at "
        "a time.",
    )
    memory_learns: bool = Field(
        default=True,
        description="Let a model learn facts about people from what they type, once a conversation is quiet.",
    )
    memory_daily_tokens: int = Field(
        10_000, ge=0, description="Tokens that learning facts may use, per person and day."
    )
    backup_nightly: bool = Field(
        default=True,
        description="Make a backup every night, at 3:00 in CORTEX_TIME_ZONE; kept: the last day's, 7 daily, 4 weekly.",
    )
    backup_to: str = Field(
        "", description="Where backups are kept: a folder, s3://bucket or s3://bucket/prefix. Empty: HOME/backups."
    )
    backup_passphrase: str = Field(
        "", repr=False, description="Encrypts backups. They cannot be restored without it, so keep a copy elsewhere."
    )
    backup_s3_endpoint: str = Field("", description="Address of the S3 store, such as https://s3.example.org.")
    backup_s3_region: str = Field("us-east-1", description="Region of the S3 store.")
    backup_s3_key_id: str = Field("", description="Id of the S3 access key.")
    backup_s3_secret: str = Field("", repr=False, description="Secret of the S3 access key.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="How much is logged: debug, info, warning or error."
    )
    allow_second_process: bool = Field(
        default=False,
        description="For tests and commands only: do not lock HOME against a second `cortex serve`.",
    )
    shutdown_grace_s: float = Field(
        10.0, ge=0.1, le=300, description="Seconds that running work has to reach a safe point after SIGTERM."
    )
    offline_delay_ms: int = Field(
        12, ge=0, le=5000, description="Pause between words of the offline demo model, in milliseconds."
    )

    @field_validator("allowed_folders")
    @classmethod
    def _pairs(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        pairs = [word.partition("=") for word in value]
        if any(not name.strip().isidentifier() or not Path(place.strip()).is_absolute() for name, _, place in pairs):
            raise ValueError("write name=/absolute/path, several with commas between")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _host_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        bare = (re.sub(r"^https?://", "", word).partition("/")[0] for word in value)  # as they stand in a browser
        return tuple((one.partition(":")[0] if one.count(":") == 1 else one.strip("[]")) for one in bare)

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for word in value:
            ipaddress.ip_network(word, strict=False)
        return value

    @field_validator("encoder_folder")
    @classmethod
    def _folder(cls, value: str) -> str:
        if value and not Path(value).expanduser().is_dir():
            raise ValueError("is no folder here")
        return value

    @field_validator("backup_to")
    @classmethod
    def _place(cls, value: str) -> str:
        if value and not re.fullmatch(r"s3://[A-Za-z0-9._-]+(/[A-Za-z0-9._/-]*)?", value) and not value.startswith("/"):
            raise ValueError("must be an absolute folder, or s3://bucket/prefix")
        return value

    @field_validator("public_url", "searxng_url", "otel_endpoint", "backup_s3_endpoint")
    @classmethod
    def _web_address(cls, value: str) -> str:
        try:
            is_fine = not value or (bool(web_place(value)) and urlsplit(value).username is None)
        except ValueError:
            is_fine = False
        if not is_fine:
            raise ValueError("must be an address such as https://cortex.example.org")
        return value.rstrip("/")

    @field_validator("public_url")
    @classmethod
    def _own_host(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError(
                "must have no path: Cortex needs a host name of its own, such as https://cortex.example.org, or a port"
            )
        return value

    @field_validator("database_url", "engine_url")
    @classmethod
    def _database(cls, value: str) -> str:
        if value and value.split(":", 1)[0].split("+", 1)[0] not in ("sqlite", "postgresql", "postgres"):
            raise ValueError("must begin with sqlite: or postgresql:")
        return value

    @field_validator("time_zone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            zoneinfo.ZoneInfo(value)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError("is no time zone; write one such as Europe/Berlin") from error
        return value

    @field_validator("metrics_token")
    @classmethod
    def _hard_to_guess(cls, value: str) -> str:
        if value and (len(value) < 16 or not value.isascii() or not value.isprintable()):
            raise ValueError("must have at least 16 plain characters")
        return value

    @field_validator("secret_key")
    @classmethod
    def _long_enough(cls, value: str) -> str:
        if value and len(value) < key_file.SHORTEST:
            raise ValueError(f"must have at least {key_file.SHORTEST} characters")
        return value

    def hold(self, values: Mapping[str, Any]) -> None:  # Any: a setting's value, checked
        """Let these values be in force, for everybody who has this object: what an admin set on the page.

        `model_fields_set` goes on naming what was given outside. For `base/server_settings.py` alone.
        """
        vars(self).update(values)

    @property
    def database(self) -> str:
        """The database in force, as a URL."""
        return self.database_url or f"sqlite:///{self.home / 'cortex.db'}"

    @property
    def engine_database(self) -> str:
        """The durable engine's database in force, as a URL."""
        if self.engine_url:
            return self.engine_url
        return self.database if self.is_postgresql else f"sqlite:///{self.home / 'engine.db'}"

    @property
    def model_places(self) -> tuple[tuple[str, int], ...]:
        """`model_hosts` as pairs of host and port."""
        return host_ports(self.model_hosts)

    @property
    def folders(self) -> dict[str, str]:
        """The further folders by name."""
        return {name.strip(): path.strip() for name, _, path in (item.partition("=") for item in self.allowed_folders)}

    @property
    def jobs_at_once_here(self) -> int:
        """`jobs_at_once`, or what this machine's processors allow: a run mostly waits for its model."""
        return self.jobs_at_once or min(JOBS_PER_PROCESSOR * len(os.sched_getaffinity(0)), JOBS_MOST)

    @property
    def is_postgresql(self) -> bool:
        """Tell whether the database is PostgreSQL."""
        return self.database.startswith("postgres")

    @property
    def is_loopback(self) -> bool:
        """Tell whether the bind is one that only this machine can reach."""
        return is_this_machine(self.host)

    @property
    def is_private(self) -> bool:
        """Tell whether only this machine reaches the page: by the bind, or by how the container's port is published."""
        return self.is_loopback or self.container

    @property
    def page_host(self) -> str:
        """The host to type in an address of the page, where no public one is set."""
        return "127.0.0.1" if self.container else f"[{self.host}]" if ":" in self.host else self.host

    @property
    def known_secrets(self) -> tuple[str, ...]:
        """Return what may stand in no log line."""
        return tuple(getattr(self, name) for name in _SECRET)

    @property
    def key_file(self) -> Path:
        """Where a generated key lies."""
        return self.home / key_file.NAME


def load_settings(env_file: Path | None = Path(".env"), **given: Any) -> Settings:
    """The settings in force: defaults < `.env` < environment < `given`; makes HOME when it is missing.

    `secret_key` is "" where there is none yet. Raises ConfigError with one line that names the wrong setting.
    """
    settings = read_settings(env_file, **given)
    home = settings.home.expanduser().absolute()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = settings.secret_key or key_file.stored_key(home / key_file.NAME)
    except OSError as error:
        words = disk_faults.of_disk(error) or f"cannot use {str(home)!r}: {error.strerror or error}"
        raise ConfigError(f"{PREFIX}HOME: {words}") from error
    return settings.model_copy(update={"home": home, "secret_key": key})


def read_settings(env_file: Path | None = Path(".env"), **given: Any) -> Settings:
    """The same as they are written, with nothing made: for what needs no HOME and no key."""
    try:
        return Settings(_env_file=env_file, **given)
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from error
    except (UnicodeDecodeError, OSError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror or error
        raise ConfigError(f"{str(env_file)!r} cannot be read: {why}") from error


def unknown_variables(environ: Mapping[str, str], env_file: Path | None = Path(".env")) -> list[str]:
    """A line for each CORTEX_ variable that nothing reads, with the likeliest right name, and for each that is none."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    text = env_file.read_text(encoding="utf-8") if env_file and env_file.is_file() else ""
    bindings = list(parse_stream(StringIO(text)))
    written = [one.key for one in bindings if one.key]
    lines = [f"Line {one.original.line} of {str(env_file)!r} cannot be read" for one in bindings if one.error]
    for name in sorted({*environ, *written}):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            lines.append(f"{name} is not a setting" + (f"; did you mean {near[0]}?" if near else ""))
    return lines


def env_example() -> str:
    """The text of `.env.example`: every setting with its description and default, commented out."""
    lines = ["# Copy to .env and remove the # of what you change. Generated: `make docs` writes this file.", ""]
    # What a class inherits stands first in its fields, and here last.
    fields = sorted(Settings.model_fields.items(), key=lambda item: item[0] in NotificationSettings.model_fields)
    for name, field in fields:
        default = field.get_default(call_default_factory=True)
        shown = "" if default in ((), {}) else str(default).lower() if isinstance(default, bool) else str(default)
        lines += [f"# {field.description}", f"#{PREFIX}{name.upper()}={shown}", ""]
    return "\n".join(lines)


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=True)[0]
    name = str(first["loc"][0]) if first["loc"] else "?"
    message = what_is_wrong(first)
    given = "" if name in HIDDEN else f" (it is {first.get('input')!r})"
    return f"{PREFIX}{name.upper()}: {message}{given}"


if __name__ == "__main__":
    sys.stdout.write(env_example())
