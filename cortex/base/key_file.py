"""The file of the secret key, HOME/secret.key: read, and made once. Who may make one is decided by `app.py`."""

import os
import secrets
from pathlib import Path

from cortex.base import private
from cortex.base.errors import ConfigError

NAME = private.KEY
SHORTEST = 32


def stored_key(path: Path) -> str:
    """The key in the file, "" when there is none. ConfigError for what cannot be one."""
    try:
        text = path.read_bytes().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
    if text and (len(text) < SHORTEST or not text.isascii()):
        raise ConfigError(
            f"CORTEX_SECRET_KEY: {str(path)!r} is not a valid key: it is damaged or too short. Restore the old file. "
            "If you have none, remove this one; the next start says what was encrypted with it."
        )
    return text


def made_key(path: Path) -> str:
    """The key in the file, made now unless there is one: whole or not at all, readable by its owner only."""
    beside = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        private.write_beside(beside, f"{secrets.token_urlsafe(48)}\n".encode())
        private.sync(beside)  # the key outlives a power cut before anything is sealed with it
        if not path.exists() or path.stat().st_size:
            _link(beside, path)
        else:
            os.replace(beside, path)  # an empty one, left by a full disk
    finally:
        beside.unlink(missing_ok=True)
    private.sync(path.parent)
    return stored_key(path)


def _link(made: Path, path: Path) -> None:
    """Give the file its name; where another process was faster, its key counts."""
    try:
        os.link(made, path)
    except FileExistsError:
        return
