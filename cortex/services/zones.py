"""Names of time zones: the places to choose from, and which zone is meant by what a person typed. Reads no clock."""

import unicodedata
import zoneinfo
from functools import lru_cache

from cortex.base.errors import UserError

CONTINENTS = (
    "Africa/",
    "America/",
    "Antarctica/",
    "Asia/",
    "Atlantic/",
    "Australia/",
    "Europe/",
    "Indian/",
    "Pacific/",
)


def is_zone(name: str) -> bool:
    """Tell whether this is the exact name of a zone."""
    return name in _known()


@lru_cache(maxsize=1)
def places() -> tuple[str, ...]:
    """The names of places, as a person would look for theirs, and UTC."""
    return ("UTC", *sorted(name for name in _known() if name.startswith(CONTINENTS)))


def zone_named(typed: str) -> str:
    """The zone of this name, or of this city alone, in any case and with or without accents.

    UserError for a name that is none, and with the zones that fit when there are several.
    """
    if is_zone(typed):
        return typed
    wanted = _folded(typed)
    fits = [place for place in places() if wanted in (_folded(place), _folded(place.rpartition("/")[2]))]
    if len(fits) == 1:
        return fits[0]
    shown = repr(typed[:40])
    if fits:
        raise UserError(f"{shown} matches several time zones: {', '.join(fits)}. Write one of them.", field="time_zone")
    raise UserError(f"{shown} is not a time zone. Enter one such as Europe/Berlin.", field="time_zone")


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    """Read from the disk once."""
    return frozenset(zoneinfo.available_timezones())


def _folded(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name.replace("_", " ")).casefold()
    return " ".join("".join(one for one in letters if not unicodedata.combining(one)).split())
