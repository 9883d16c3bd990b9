"""What is wrong with a value that was filled in, in words for people: pydantic's own are for programmers.

The one place for it: pages, cards, files in the home and settings all say it so. Reads no form and knows no field.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from cortex.base.errors import UserError

_Limits = Mapping[str, Any]  # Any: what pydantic tells of the rule that was broken, by its name
_NUMBER, _WHOLE, _TEXT, _SWITCH = "must be a number", "must be a whole number", "must be text", "must be yes or no"
_DATE, _TIME = "must be a date, such as 2026-11-23", "must be a date and time, such as 2026-11-23T09:30"
_WORDS: dict[str, str | Callable[[_Limits], str]] = {
    "missing": "is needed",
    "extra_forbidden": "is not known here",
    "int_parsing": _WHOLE,
    "int_parsing_size": "must be a smaller number",
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "bool_parsing": _SWITCH,
    "bool_type": _SWITCH,
    "string_type": _TEXT,
    "string_unicode": _TEXT,
    "string_pattern_mismatch": "contains characters that are not allowed",
    "string_too_short": lambda rule: f"must have at least {_counted(rule['min_length'], 'character')}",
    "string_too_long": lambda rule: f"must have at most {_counted(rule['max_length'], 'character')}",
    "too_short": lambda rule: f"must have at least {_counted(rule['min_length'], 'entry', 'entries')}",
    "too_long": lambda rule: f"must have at most {_counted(rule['max_length'], 'entry', 'entries')}",
    "greater_than": lambda rule: f"must be more than {_plain(rule['gt'])}",
    "greater_than_equal": lambda rule: f"must be at least {_plain(rule['ge'])}",
    "less_than": lambda rule: f"must be less than {_plain(rule['lt'])}",
    "less_than_equal": lambda rule: f"must be at most {_plain(rule['le'])}",
    "literal_error": lambda rule: f"must be {rule['expected']}",
    "multiple_of": lambda rule: f"must be a multiple of {_plain(rule['multiple_of'])}",
    "enum": lambda rule: f"must be {rule['expected']}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "dict_type": "must be an object, {…}",
    "model_type": "must be an object, {…}",
    "model_attributes_type": "must be an object, {…}",
    "json_invalid": "is not JSON",
    "path_type": "must be a path",
    "url_parsing": "is not a web address",
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), _DATE),
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIME),
}


def what_is_wrong(fault: ErrorDetails) -> str:
    """Why this value cannot be: what follows its field's name, without a full stop; a validator's own words as is."""
    if fault["type"] in ("value_error", "assertion_error"):
        return fault["msg"].partition(", ")[2]
    words = _WORDS.get(fault["type"], "cannot be used as it is")
    return words if isinstance(words, str) else words(fault.get("ctx", {}))


def one_line(text: str, longest: int, field: str, question: str) -> str:
    """The text on one line; UserError at `field`, with the question, when there is none, or when it is too long."""
    words = " ".join(text.split())
    if not words:
        raise UserError(question, field=field)
    if len(words) > longest:
        raise UserError(f"That is too long: at most {longest} characters.", field=field)
    return words


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


def _plain(number: float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)
