"""Values of steps as portable JSON and back, exactly: tuples stay tuples, frozen dataclasses keep their class.

Only the classes of `ports/stored_names.py` pass, each under the name it has there. A field that a later version
added takes its default when an older record is read; one it dropped is left out. Half a surrogate becomes U+FFFD.
Errors are values too, so that a replayed step raises what it raised the first time.
"""

import re
from dataclasses import fields, is_dataclass
from typing import Any

from cortex.base.errors import CortexError
from cortex.ports.stored_names import ERRORS, VALUES

TAG = "$"
_HALF = re.compile("[\ud800-\udfff]")  # no database can hold half of a surrogate pair, and a model may send one
_TAGS = {kind: tag for tag, kind in VALUES.items()}
_ERROR_NAMES = {kind: name for name, kind in ERRORS.items()}


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
        case _ if type(value) in _TAGS and is_dataclass(value):
            return {
                TAG: _TAGS[type(value)],
                "v": {field.name: encode(getattr(value, field.name)) for field in fields(value)},
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
    known = {field.name for field in fields(kind)}
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
