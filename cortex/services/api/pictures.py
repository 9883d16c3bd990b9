"""Pictures in a program's request: taken out of it, or fetched from public addresses, and made as models get them."""

import asyncio
import binascii
import hashlib
import io
from base64 import b64decode
from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import CortexError
from cortex.base.messages import Picture
from cortex.integrations.web import Web
from cortex.ports.documents import Pictures
from cortex.services.api.requests import BadRequest

MOST = 20  # of one request
MOST_BYTES = 12_000_000  # of one of them
SHOWN = 80


class GivenPictures(Struct, frozen=True, kw_only=True):
    """Those of a request, by where they were, with their bytes by hash."""

    parts: dict[str, Picture]
    data: dict[str, bytes]


class ProgramPictures(Struct, frozen=True, kw_only=True):
    """Reads them."""

    web: Web
    maker: Pictures

    async def read(self, places: Sequence[str]) -> GivenPictures:
        """All of them; BadRequest says which cannot be read, and why."""
        must_be_few(places)
        parts: dict[str, Picture] = {}
        data: dict[str, bytes] = {}
        for number, place in enumerate(places, 1):
            try:
                made = await self.maker.ready(io.BytesIO(await self.raw(place)))
            except BadRequest:
                raise
            except CortexError as error:
                raise unread(place, error.message) from error
            digest = hashlib.sha256(made.data).hexdigest()
            size = {"width": made.width, "height": made.height}
            parts[place] = Picture(
                document="", sha256=digest, name=f"picture {number}", media_type=made.media_type, **size
            )
            data[digest] = made.data
        return GivenPictures(parts=parts, data=data)

    async def raw(self, place: str) -> bytes:
        """The bytes of the picture at this place: a data: address, or one of the public web. BadRequest."""
        data = await self._at(place)
        if data.startswith(b"GIF8"):
            raise unread(place, "GIF is not taken. Send it as PNG, JPEG, WebP or HEIC.")
        return data

    async def _at(self, place: str) -> bytes:
        if place[:5].lower() == "data:":
            return await asyncio.to_thread(_unpacked, place)
        if place.partition(":")[0].lower() not in ("http", "https"):
            raise unread(place, "write a data:, http:// or https:// address.")
        try:
            got = await self.web.fetch(place)
        except CortexError as error:
            raise unread(place, error.message) from error
        if got.status >= 400:
            raise unread(place, f"the server answered with status {got.status}.")
        if got.is_cut:
            raise unread(place, "it is too large.")
        return got.body


def must_be_few(places: Sequence[str]) -> None:
    """BadRequest for more pictures than are taken."""
    if len(places) > MOST:
        raise BadRequest(f"At most {MOST} pictures are taken in a request; there are {len(places)}.", field="messages")


def unread(place: str, why: str) -> BadRequest:
    """Return what is said of a picture that cannot be read."""
    shown = place if len(place) <= SHOWN else f"{place[:SHOWN]}…"
    return BadRequest(f"The picture {shown!r} cannot be read: {why}", field="messages", code="invalid_image_url")


def _unpacked(place: str) -> bytes:
    head, _, text = place.partition(",")
    if not head.lower().endswith(";base64"):
        raise unread(place, "a data: address has to be in base64.")
    try:
        data = b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise unread(place, "its base64 is damaged.") from None
    if not data or len(data) > MOST_BYTES:
        raise unread(place, f"it has to have 1 to {MOST_BYTES // 1_000_000} MB." if data else "it is empty.")
    return data
