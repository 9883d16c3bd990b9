"""Passwords: what makes one good enough, and hashing that cannot eat the machine. Knows no account."""

import asyncio
import unicodedata
from collections.abc import Callable
from typing import TypeVar

from argon2 import DEFAULT_MEMORY_COST, DEFAULT_TIME_COST, PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from cortex.base.errors import Throttled, UserError

T = TypeVar("T")

MIN_LENGTH = 15
MAX_LENGTH = 1000
_AT_ONCE = 2  # each takes 64 MiB and most of a core
_WAIT_S = 20.0

# What people write to get past a length rule, repeated and cut to length; compared without case, blanks and signs.
_WORN = (
    "password",
    "passphrase",
    "passwort",
    "kennwort",
    "motdepasse",
    "letmein",
    "welcome",
    "iloveyou",
    "changeme",
    "administrator",
    "admin",
    "cortex",
    "secret",
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890123456789",
    "12345678901234567890",
    "09876543210987654321",
    "correcthorsebatterystaple",
    "thequickbrownfoxjumpsoverthelazydog",
)


class Passwords:
    """Hashes and checks with argon2id, at most two at a time; the costs are the library's own unless given."""

    def __init__(self, *, time_cost: int = DEFAULT_TIME_COST, memory_cost_kib: int = DEFAULT_MEMORY_COST) -> None:
        self._hasher = PasswordHasher(time_cost=time_cost, memory_cost=memory_cost_kib)
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._decoy = ""

    async def hash(self, password: str) -> str:
        """The hash to store, with its salt and parameters in it."""
        return await self._run(self._hasher.hash, _normal(password))

    async def check(self, stored: str | None, password: str) -> bool:
        """Tell whether the password is the one that was hashed. Without a hash it takes as long, and is not."""
        if not stored:
            self._decoy = self._decoy or await self.hash("nobody's password, hashed to take the same time")
            await self._run(self._matches, self._decoy, _normal(password))
            return False
        return await self._run(self._matches, stored, _normal(password))

    def is_outdated(self, stored: str) -> bool:
        """Tell whether the library would hash more carefully today."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, function: Callable[..., T], *arguments: str) -> T:
        try:
            async with asyncio.timeout(_WAIT_S), self._room:
                return await asyncio.to_thread(function, *arguments)
        except TimeoutError:
            raise Throttled("Too many people are logging in right now. Try again.", wait_s=_WAIT_S) from None


def refuse_weak(password: str, name: str) -> None:
    """UserError, with the reason, for a password that is too short, too long or among the first to be guessed."""
    plain = _normal(password)
    if len(plain) < MIN_LENGTH:
        raise UserError(f"Use at least {MIN_LENGTH} characters. A few words are easy to remember.", field="password")
    if len(plain) > MAX_LENGTH:
        raise UserError(f"Use at most {MAX_LENGTH} characters.", field="password")
    letters = "".join(sign for sign in plain.casefold() if sign.isalnum())
    own = "".join(sign for sign in _normal(name).casefold() if sign.isalnum())
    if len(set(letters)) < 5 or any(_is_made_of(letters, word) for word in (*_WORN, own)):
        raise UserError("This password is too easy to guess. Choose another.", field="password")


def _is_made_of(letters: str, word: str) -> bool:
    """Tell whether nothing but `word`, over and over or cut short, and a few digits at the end, makes up `letters`."""
    core = letters.rstrip("0123456789") if not word.isdigit() else letters
    if not word or not core:
        return False
    return core == (word * (len(core) // len(word) + 1))[: len(core)]


def _normal(password: str) -> str:
    """The same signs for the same keys, however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password.encode("utf-8", "replace").decode())
