"""Draws the app's icons: the sign of `static/icon.svg` as PNG, for launchers and notifications that read no SVG.

Runs at build time on the standard library alone, as a part of `web/assets.py`; nothing else calls it.
"""

import math
import struct
import zlib
from typing import Literal

from msgspec import Struct

TEAL, WHITE = (15, 107, 99), (255, 255, 255)
GRID = 32.0  # the drawing of icon.svg: an open ring and a dot
CENTRE, RADIUS, HALF_STROKE = (15.638, 16.0), 7.0, 1.5
GAP = math.atan2(4.5, 5.362)  # the ring is open to the right by so much, up and down
DOT, DOT_RADIUS = (21.5, 16.0), 2.0
CORNER = 8.0


class Icon(Struct, frozen=True, kw_only=True):
    """One file. `ground`: a tile with round corners, a whole square (its wearer cuts it), or none: the sign alone."""

    name: str
    side_px: int
    ground: Literal["tile", "square", "none"] = "tile"
    zoom: float = 1.0


ICONS = (
    Icon(name="icon-192.png", side_px=192),
    Icon(name="icon-512.png", side_px=512),
    Icon(name="maskable-512.png", side_px=512, ground="square"),  # the sign lies within the safe circle of 40 %
    Icon(name="touch-180.png", side_px=180, ground="square"),  # Apple's launcher fills see-through corners with black
    Icon(name="badge-96.png", side_px=96, ground="none", zoom=1.6),  # Android shows its shape in one colour
)


def png(icon: Icon) -> bytes:
    """The icon as a PNG file of 8-bit RGBA."""
    upper = [b"\0" + _row(icon, y) for y in range(icon.side_px // 2)]  # the lower half is its mirror image
    rows = b"".join([*upper, *reversed(upper)])
    head = struct.pack(">IIBBBBB", icon.side_px, icon.side_px, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _row(icon: Icon, row: int) -> bytes:
    unit = GRID / icon.side_px
    y = (row + 0.5) * unit
    pixels = bytearray()
    for column in range(icon.side_px):
        x = (column + 0.5) * unit
        sign = _cover(_to_sign(_zoomed(x, icon.zoom), _zoomed(y, icon.zoom)) * icon.zoom, unit)
        ground = {"none": 0.0, "square": 1.0}.get(icon.ground)
        if ground is None:
            ground = _cover(_to_tile(x, y), unit)
        base = TEAL if ground else WHITE
        pixels += bytes(round(under + (over - under) * sign) for under, over in zip(base, WHITE, strict=True))
        pixels.append(round(255 * max(ground, sign)))
    return bytes(pixels)


def _cover(distance: float, unit: float) -> float:
    """Return how much of a pixel lies inside a shape whose edge is so far away (negative: inside)."""
    return min(1.0, max(0.0, 0.5 - distance / unit))


def _zoomed(at: float, zoom: float) -> float:
    return GRID / 2 + (at - GRID / 2) / zoom


def _to_sign(x: float, y: float) -> float:
    away_x, away_y = x - CENTRE[0], y - CENTRE[1]
    if abs(math.atan2(away_y, away_x)) >= GAP:
        ring = abs(math.hypot(away_x, away_y) - RADIUS) - HALF_STROKE
    else:  # before the opening: the nearer of the two round ends
        end_x, end_y = RADIUS * math.cos(GAP), RADIUS * math.sin(GAP)
        ring = math.hypot(away_x - end_x, abs(away_y) - end_y) - HALF_STROKE
    return min(ring, math.hypot(x - DOT[0], y - DOT[1]) - DOT_RADIUS)


def _to_tile(x: float, y: float) -> float:
    out_x, out_y = (max(abs(at - GRID / 2) - (GRID / 2 - CORNER), 0.0) for at in (x, y))
    return math.hypot(out_x, out_y) - CORNER
