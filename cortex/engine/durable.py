"""Keeps the steps of a run (`ports/steps.py`) with the engine, as portable JSON and back, exactly; errors included.

Tuples stay tuples, records their class. Only the classes of `ports/stored_names.py` pass, under the names
they have there. A field that a later version added takes its default when an older record is read; one it dropped is
left out. Half a surrogate becomes U+FFFD.
"""

import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from cortex.base.errors import CortexError, DatabaseUnavailable
from cortex.base.outages import Outages
from cortex.base.record import field_names, is_record
from cortex.ports import steps
from cortex.ports.stored_names import ERRORS, VALUES

TAG = "$"
_HALF = re.compile("[\ud800-\udfff]")  # no database can hold half of a surrogate pair, and a model may send one
_TAGS = {kind: tag for tag, kind in VALUES.items()}
_ERROR_NAMES = {kind: name for name, kind in ERRORS.items()}

Result = TypeVar("Result")


class Keeper(Protocol):
    """The engine, as far as it is needed here."""

    async def step(self, name: str, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do the action once and keep its JSON result; on replay, the kept one."""
        ...


class DurableSteps:
    """Implements `Steps` over an engine."""

    def __init__(self, engine: Keeper, outages: Outages) -> None:
        """`outages`: waits where the database is away, and does the action again."""
        self._engine = engine
        self._outages = outages

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside the block, and in tasks begun there, every marked method is a step."""
        token = steps.current.set(self)
        try:
            yield
        finally:
            steps.current.reset(token)

    async def keep(self, title: str, action: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the action once and keep what it returns or raises; on replay, what was kept.

        While the database is away it is tried again, as after a kill.
        """

        async def tried() -> Result:
            try:
                return await action()
            except DatabaseUnavailable:
                steps.is_first_life.set(False)  # the next try may find traces of this one
                raise

        async def kept() -> Any:
            token = steps.current.set(None)  # what a step calls is part of it
            try:
                return {"value": encode(await self._outages.wait_out(tried))}
            except CortexError as error:
                return encode_error(error)
            finally:
                steps.current.reset(token)
                keeping_begins()  # the engine waits for its database by itself, and tells nobody

        with self._outages.waiting_when_late() as keeping_begins:
            found = await self._engine.step(title, kept)
        if "error" in found:
            raise decode_error(found)
        # The codec gives back the very class that it was given.
        return cast(Result, decode(found["value"]))


def encode(value: object) -> Any:
    """The value as JSON data. TypeError for any other class."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return value if value.isascii() else _HALF.sub("\ufffd", value)
        case tuple():
            return {TAG: "tuple", "v": [encode(item) for item in value]}
        case list():
            return [encode(item) for item in value]
        case dict():
            return _encode_mapping(value)
        case _ if type(value) in _TAGS and is_record(value):
            return {
                TAG: _TAGS[type(value)],
                "v": {name: encode(getattr(value, name)) for name in field_names(value)},
            }
        case _:
            raise TypeError(f"{type(value).__name__!r} is no value of a step: it belongs into ports/stored_names.py")


def _encode_mapping(value: dict[Any, Any]) -> Any:
    if not all(isinstance(key, str) for key in value):
        raise TypeError("A step's mapping has text keys only")
    plain = {key: encode(item) for key, item in value.items()}
    return {TAG: "dict", "v": plain} if TAG in plain else plain


def decode(data: Any) -> Any:
    """The value that `encode` wrote. TypeError for an unknown tag."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    tag = data.get(TAG)
    if tag is None:
        return {key: decode(item) for key, item in data.items()}
    inner = data["v"]
    if tag == "tuple":
        return tuple(decode(item) for item in inner)
    if tag == "dict":
        return {key: decode(item) for key, item in inner.items()}
    kind = VALUES.get(tag)
    if kind is None:
        raise TypeError(f"A recorded step holds an unknown class: {tag!r}")
    known = field_names(kind)
    return kind(**{key: decode(item) for key, item in inner.items() if key in known})


def encode_error(error: CortexError) -> dict[str, Any]:
    """An error of our tree with its extra facts, as JSON data. TypeError for any other class."""
    name = _ERROR_NAMES.get(type(error))
    if name is None:
        raise TypeError(f"{type(error).__name__!r} is no error of a step: it belongs into ports/stored_names.py")
    extra = {key: value for key, value in vars(error).items() if key != "message"}
    return {"error": name, "message": error.message, "extra": encode(extra)}


def decode_error(data: dict[str, Any]) -> CortexError:
    """The error that `encode_error` wrote."""
    return ERRORS[data["error"]](data["message"], **decode(data["extra"]))
