"""The sentence models that are registered here, by key: a snapshot names one, or "" for the table that ships.

Loads and opens nothing; `services/tools/encoders.py` registers them. What a plan makes of a failure is said here too.
"""

from cortex.base.errors import EncoderFailed
from cortex.ports.encoder import Encoder
from cortex.selection.words import meanings

LABEL = "sentence model"
_REGISTERED: dict[str, Encoder] = {}


def register(encoder: Encoder) -> None:
    """Have it at hand under its key."""
    _REGISTERED[encoder.key] = encoder


def unregister(encoder: Encoder) -> None:
    """Forget it, when its owner closes it; another one under the same key stays."""
    for key in [key for key, each in _REGISTERED.items() if each is encoder]:
        del _REGISTERED[key]


def named(key: str) -> Encoder:
    """The sentence model of this key, the shipped table of meanings for ""; EncoderFailed when none is registered."""
    if not key:
        return meanings.shipped()
    found = _REGISTERED.get(key)
    if found is None:
        raise EncoderFailed(f"the sentence model {key!r} is not here")
    return found


def skipped(why: str) -> dict[str, str]:
    """The label of a plan that was made without the sentence model that it should have had."""
    return {LABEL: f"left out: {why}"}
