"""Parses SQL, to say whether it is well formed; executes nothing. sqlglot is heavy: loaded on first use, by `scan`."""

import sqlglot
from sqlglot.errors import SqlglotError


def parse(text: str) -> None:
    """Raise ValueError with the place and the fault when the statements do not parse."""
    try:
        sqlglot.parse(text)
    except SqlglotError as error:
        raise ValueError(str(error)) from error
