"""Reads JSON that somebody else wrote: a model, a server, a form. What is nested too deep is an error, not a crash."""

from typing import Any

from pydantic_core import from_json


def parsed(text: str | bytes) -> Any:  # Any: whatever the text says
    """The value; ValueError for what is no JSON, has half a surrogate, or is nested deeper than 200 levels.

    `json.loads` ends in a RecursionError there, which is no ValueError.
    """
    return from_json(text.encode() if isinstance(text, str) else text)  # half a surrogate in it: a ValueError here
