"""Makes a picture ready for models. A program: a picture on its input, JSON with two of it on its output.

It has a process of its own, with limits, because a decoder can be led to take minutes and gigabytes: `pictures.py`
starts it. What it writes is encoded anew, from the pixels alone: nothing that a camera noted, and no place, stays.
"""

import base64
import io
import json
import resource
import struct
import sys
import warnings
import zlib

import pi_heif
from PIL import Image, ImageCms, ImageOps

LONGEST_PX = 1_568  # what is longer is made smaller by Anthropic's API itself, and costs time
SMALL_PX = 320
PIXELS_MOST = 60_000_000
BYTES_MOST = 1_500_000
QUALITIES = (85, 70, 50)
ADDRESS_BYTES = 2_000_000_000
CPU_S = 20
FORMATS = ("PNG", "JPEG", "WEBP", "HEIF")
# What decoders raise for bytes that somebody thought out, in words that are nobody's but theirs.
ODD_FAULTS = (AttributeError, struct.error, zlib.error)
FAULTS = (
    OSError,
    SyntaxError,
    EOFError,
    RuntimeError,
    ArithmeticError,
    LookupError,
    TypeError,
    ValueError,
    *ODD_FAULTS,
)


def ready(data: bytes) -> dict[str, object]:
    """The picture in the size that models take, and a small one. ValueError in a sentence where it cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picture = _opened(data)
    picture.thumbnail((LONGEST_PX, LONGEST_PX), Image.Resampling.LANCZOS)
    encoded, media_type = _encoded(picture)
    width, height = picture.size
    picture.thumbnail((SMALL_PX, SMALL_PX), Image.Resampling.LANCZOS)
    return {
        "data": base64.b64encode(encoded).decode(),
        "media_type": media_type,
        "width": width,
        "height": height,
        "small": base64.b64encode(_saved(picture, "WEBP", quality=70)).decode(),
    }


def _opened(data: bytes) -> Image.Image:
    """The first frame, upright, in sRGB, with one plain mode."""
    try:
        return _decoded(data)
    except Image.DecompressionBombError as error:
        raise ValueError(f"The picture has more than {PIXELS_MOST // 1_000_000} million pixels.") from error
    except FAULTS as error:
        raise ValueError("The picture is damaged: it cannot be read.") from error


def _decoded(data: bytes) -> Image.Image:
    pi_heif.register_heif_opener(thumbnails=False)
    picture: Image.Image = Image.open(io.BytesIO(data), formats=FORMATS)
    if picture.width * picture.height > PIXELS_MOST:
        raise Image.DecompressionBombError
    picture.draft("RGB", (2 * LONGEST_PX, 2 * LONGEST_PX))  # a JPEG is decoded smaller at once
    picture.load()
    profile = picture.info.get("icc_profile")
    upright = ImageOps.exif_transpose(picture)
    has_alpha = upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info
    plain = upright.convert("RGBA" if has_alpha else "RGB")
    plain.info.clear()
    return _in_srgb(plain, profile) if profile else plain


def _in_srgb(picture: Image.Image, profile: bytes) -> Image.Image:
    try:
        given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        made = ImageCms.profileToProfile(picture, given, ImageCms.createProfile("sRGB"), outputMode=picture.mode)
    except (ImageCms.PyCMSError, OSError, ValueError):  # of another space, or broken: the numbers are shown as they are
        return picture
    made = made or picture
    made.info.clear()
    return made


def _encoded(picture: Image.Image) -> tuple[bytes, str]:
    """Drawings and screens stay as they are while that is small; everything else is a JPEG."""
    if picture.mode == "RGBA":
        white = Image.new("RGB", picture.size, "white")
        white.paste(picture, mask=picture.getchannel("A"))
        picture = white
    if picture.getcolors(maxcolors=4_096) is not None:
        drawn = _saved(picture, "PNG", optimize=True)
        if len(drawn) <= BYTES_MOST:
            return drawn, "image/png"
    encoded = b""
    for quality in QUALITIES:
        encoded = _saved(picture, "JPEG", quality=quality)
        if len(encoded) <= BYTES_MOST:
            break
    return encoded, "image/jpeg"


def _saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    target = io.BytesIO()
    picture.save(target, kind, **options)
    return target.getvalue()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    try:
        made = ready(sys.stdin.buffer.read())
    except ValueError as refused:
        made = {"error": str(refused)}
    except MemoryError:
        made = {"error": "The picture is too large to be read."}
    json.dump(made, sys.stdout)
