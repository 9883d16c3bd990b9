"""Identifiers: new ones that sort by time, and derived ones that make a repeated step write the same row."""

import hashlib
import secrets
import uuid
from datetime import UTC, datetime, timedelta

from cortex.base.clock import Clock, now

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMESPACE = uuid.UUID("6a1f3a52-6f0e-5c0b-9d0e-3c0a7e1d5b84")
_LENGTH = 26
_RANDOM_BITS = 70
SHORT_CHARACTERS = 6


def new_id(clock: Clock = now) -> str:
    """A fresh id of 26 characters: the time in microseconds, then 70 random bits; sorts in the order of making."""
    moment_us = (clock() - _EPOCH) // timedelta(microseconds=1)
    number = moment_us << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5))


def changed_id(call_id: str) -> str:
    """The id of the call that a person put in place of this one, by changing its arguments."""
    return derived_id(call_id, "changed")


def derived_id(*parts: str | int) -> str:
    """The id of 32 hex digits that these parts always give (uuid5), so that writing twice is writing once."""
    return uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in parts)).hex


def digest(text: str) -> str:
    """24 hex digits by which a text is known again."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def short(id: str) -> str:
    """The end of an id, by which people and models name its row."""
    return id[-SHORT_CHARACTERS:]


def is_named(id: str, key: str) -> bool:
    """Tell whether the key is the id, or so much of its end that it is meant; the key in small letters."""
    return len(key) >= SHORT_CHARACTERS and id.casefold().endswith(key)
