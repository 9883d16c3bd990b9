"""Values of a result as text: as the server writes them, NULL as a word, bytes as text where they are one."""

from collections.abc import Sequence

NULL = "NULL"
BYTES_SHOWN = 32


def as_row(values: Sequence[str | bytes | None]) -> tuple[str, ...]:
    """A row's cells."""
    return tuple(as_text(value) for value in values)


def as_text(value: str | bytes | None) -> str:
    """A cell: numbers, dates and JSON come as the server's own text already."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _hex(value)
    return text if all(sign.isprintable() or sign in "\n\r\t" for sign in text) else _hex(value)


def _hex(value: bytes) -> str:
    more = f"... ({len(value)} bytes)" if len(value) > BYTES_SHOWN else ""
    return f"0x{value[:BYTES_SHOWN].hex()}{more}"
