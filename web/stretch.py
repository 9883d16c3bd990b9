"""A stretch of a long list, with the addresses of those ahead of it and behind it: what every page that lists shows.

Which rows there are a service says. A list that is read by its place in time (chats, notifications, the audit log)
makes its addresses by itself; `ui.pager` shows both.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")
PAGE_ROWS = 50


class Stretch(Struct, Generic[T], frozen=True, kw_only=True):
    """Some rows of a list. `newer`, `older`: the addresses of those ahead and behind, or empty."""

    rows: Sequence[T]
    newer: str
    older: str


def cut(
    rows: Sequence[T], start: int, place: Callable[..., str], *, most: int = PAGE_ROWS, by: str = "start", at: str = ""
) -> Stretch[T]:
    """The stretch from `start` on of a list that is there whole; its last one where it is shorter by now.

    `place`: the page's address with another `by`, the name under which it takes the start. `at`: the id of the heading
    to which the links lead, on a page of several lists.
    """
    start = min(max(0, start), max(0, len(rows) - 1) // most * most)
    return part(rows[start:], start, place, most=most, by=by, at=at)


def part(
    found: Sequence[T], start: int, place: Callable[..., str], *, most: int = PAGE_ROWS, by: str = "start", at: str = ""
) -> Stretch[T]:
    """The same of rows that were read from `start` on, one more than `most` where there are more."""
    jump = f"#{at}" if at else ""
    newer = place(**{by: max(0, start - most)}) + jump if start > 0 else ""
    older = place(**{by: start + most}) + jump if len(found) > most else ""
    return Stretch(rows=found[:most], newer=newer, older=older)
