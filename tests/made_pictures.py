"""Pictures for tests: a HEIC as a phone writes it, and what somebody made to do harm, each with its file's name."""

import base64
import io
import struct
import zlib
from collections.abc import Callable

from PIL import Image

from tests.made_documents import packed

# Made by heif-enc 1.15 (x265) on 2026-11-25 of 64 x 32 pixels, red with a blue corner at the top left, with the maker
# "PhoneMaker" and the place 48.3 N, 16.37 E; then given a property that says: to be turned by 90 degrees clockwise.
HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAettZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAA"
    "AAAAACAAAAEGlkYXQAAAAAAEAAIAAAAExpbG9jAQAAAERAAAMAAQAAAAAAAAIPAAEAAAAAAAAAkAACAAEAAAAAAAAAAQAAAAAAAAAIAAMAAAAA"
    "AAACnwABAAAAAAAAAKgAAABNaWluZgAAAAAAAwAAABVpbmZlAgAAAQABAABodmMxAAAAABVpbmZlAgAAAAACAABncmlkAAAAABVpbmZlAgAAAQ"
    "ADAABFeGlmAAAAAN9pcHJwAAAAvGlwY28AAABzaHZjQwEDcAAAAAAAAAAAAB7wAPz9+PgAAA8DIAABABhAAQwB//8DcAAAAwCQAAADAAADAB66"
    "AkAhAAEAJ0IBAQNwAAADAJAAAAMAAAMAHqAggQWW6uSmubAgAAADACAAAAMAISIAAQAGRAHBc8CJAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAUaX"
    "NwZQAAAAAAAABAAAAAIAAAABBwaXhpAAAAAAMICAgAAAAJaXJvdAMAAAAbaXBtYQAAAAAAAAACAAECgQIAAgMDhIUAAAAoaXJlZgAAAAAAAAAO"
    "ZGltZwACAAEAAQAAAA5jZHNjAAMAAQACAAABQG1kYXQAAACMKAGvBjha97bf5Ye/5H9kPP//R0RS/focJR020jyrVCc1fG59wPvH75f7DOAl09"
    "YGdj3rmhE+0M2+dw09DZRFefGJeGR+Ico5PBILYnXkbQO2K+m6uZL2eScvoRi8/3I+8fvQ/p8sWZ3//5Gf65I3GtEa32d7X/++Onhiq6b7OVWZ"
    "/nsWZsh42vsTUeAAAAAATU0AKgAAAAgAAwEPAAIAAAALAAAAMgESAAMAAAABAAYAAIglAAQAAAABAAAAPgAAAABQaG9uZU1ha2VyAAAABAABAA"
    "IAAAACTgAAAAACAAUAAAADAAAAdAADAAIAAAACRQAAAAAEAAUAAAADAAAAjAAAAAAAAAAwAAAAAQAAABIAAAABAAAAAAAAAAEAAAAQAAAAAQAA"
    "ABYAAAABAAAAAAAAAAE="
)
NO_SUCH_PLACE = "http://127.0.0.1:9/"
MAKER = b"PhoneMaker"


def drawn(kind: str = "PNG", size: tuple[int, int] = (40, 20), **how: object) -> bytes:
    """A picture of one colour."""
    made = io.BytesIO()
    Image.new("RGB", size, "teal").save(made, kind, **how)
    return made.getvalue()


def turned(kind: str = "JPEG", orientation: int = 6) -> bytes:
    """Red, with a blue corner at the top left as it is stored; to be turned as `orientation` says."""
    exif = Image.Exif()
    exif[0x010F], exif[0x0112] = MAKER.decode(), orientation
    exif[0x8825] = {1: "N", 2: (48.0, 18.0, 0.0)}
    picture, made = Image.new("RGB", (64, 32), "red"), io.BytesIO()
    picture.paste("blue", (0, 0, 16, 16))
    picture.save(made, kind, exif=exif, quality=95)
    return made.getvalue()


def png(width: int, height: int, pixels: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """A PNG that says it has this size; more: other chunks."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), *more, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _frames(count: int) -> bytes:
    made = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), (number % 256, number // 256, 7)) for number in range(count)]
    frames[0].save(made, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    return made.getvalue()


def _script(mark: bytes = b"") -> bytes:
    return mark + b"<script>fetch('%b')</script>" % NO_SUCH_PLACE.encode()


REFUSED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "3,600 million declared pixels": ("a.png", lambda: png(60_000, 60_000, bytes(1_000))),
    "as many pixels as a PNG can say": ("a.png", lambda: png(2**31 - 1, 2**31 - 1, b"")),
    "no pixels": ("a.png", lambda: png(0, 0, b"")),
    "a text that unpacks to 70 MB": ("a.png", lambda: png(1, 1, bytes(4), (b"zTXt", b"a\0\0" + _noughts()))),
    "a colour profile that unpacks to 70 MB": ("a.png", lambda: png(1, 1, bytes(4), (b"iCCP", b"a\0\0" + _noughts()))),
    "a PNG of nothing": ("a.png", lambda: b"\x89PNG\r\n\x1a\n" + bytes(50)),
    "a JPEG cut off": ("a.jpg", lambda: drawn("JPEG", (900, 900))[:2_000]),
    "a JPEG of nothing": ("a.jpg", lambda: b"\xff\xd8\xff" + bytes(range(256)) * 9),
    "a WebP of nothing": ("a.webp", lambda: b"RIFF\xff\xff\xff\xffWEBPVP8X" + bytes(90)),
    "a HEIC of nothing": ("a.heic", lambda: HEIC[:28] + bytes(90)),
    "a HEIC cut off": ("a.heic", lambda: HEIC[:600]),
    "a HEIC box without an end": ("a.heic", lambda: HEIC[:28] + b"\xff\xff\xff\xff" + HEIC[32:]),
}
READ: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a HEIC of a phone": ("a.heic", lambda: HEIC),
    "59 million pixels": ("a.png", lambda: png(7_680, 7_680, bytes(7_680 * (7_680 * 3 + 1)))),
    "a colour profile that is none": ("a.jpg", lambda: drawn("JPEG", icc_profile=b"\xff" * 400)),
    "camera notes that are none": ("a.jpg", lambda: drawn("JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")),
    "a WebP of 2,000 pictures": ("a.webp", lambda: _frames(2_000)),
    "a PNG that is an archive too": ("a.png", lambda: drawn() + packed({"word/document.xml": "<a/>"})),
    "a JPEG that is a page too": ("a.jpg", lambda: drawn("JPEG", comment=_script())),
    "a PNG with a page behind it": ("a.png", lambda: _script(drawn())),
}


def _noughts() -> bytes:
    return zlib.compress(bytes(70_000_000), 9)
