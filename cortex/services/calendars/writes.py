"""Writes a resource that was made ready, once: a second try, after a kill or a lost answer, finds itself."""

from cortex.base.errors import Conflict, NotFound
from cortex.integrations.dav.values import CONTACT_BYTES
from cortex.ports.calendars import Written
from cortex.services.calendars.accounts import DavConnection

STAMPS = ("DTSTAMP", "REV")  # of an appointment, of a contact


async def written_once(connection: DavConnection, written: Written, media: str) -> str:
    """The version after the change. One that stands there already, from a try before, is found by its own stamp."""
    try:
        if not written.data:
            await connection.delete(written.url, etag=written.etag)
            return ""
        version = await connection.put(written.url, written.data, media=media, etag=written.etag)
    except Conflict:
        stands = await _there(connection, written.url)
        if stands is None or not _is_done(written, stands[1]):
            raise
        return stands[0]
    if version:
        return version
    stands = await _there(connection, written.url)
    return stands[0] if stands else ""


async def _there(connection: DavConnection, url: str) -> tuple[str, str] | None:
    try:
        found = await connection.get(url, most_bytes=CONTACT_BYTES)
    except NotFound:
        return None
    return found.etag, found.data


def _is_done(written: Written, there: str) -> bool:
    """Tell whether this change stands there itself: by its stamp, or line by line where it puts something back."""
    lines = _lines(there)
    if not written.stamp:
        return lines == _lines(written.data)
    return any(f"{name}:{written.stamp}" in lines for name in STAMPS)


def _lines(data: str) -> list[str]:
    return sorted(data.replace("\r\n", "\n").replace("\n ", "").split("\n"))
