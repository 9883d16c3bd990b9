"""What one foreign file may cost, by its reader; the program and the daemon's side of it hold to the same numbers."""

from msgspec import Struct

MB = 1_000_000
LINE_BYTES = 16 * MB  # of any answer


class Share(Struct, frozen=True, kw_only=True):
    """The most for one file: its bytes, seconds of processor, seconds in all, lines of the answer and their bytes."""

    file_bytes: int = MB
    processor_s: int = 5
    wall_s: float = 20.0
    lines: int = 1_000
    total_bytes: int = LINE_BYTES


SHARES = {
    "document": Share(file_bytes=52_428_800, processor_s=20, wall_s=40.0, lines=4_000),
    "chats": Share(file_bytes=55 * MB, processor_s=60, wall_s=150.0, lines=21_000, total_bytes=600 * MB),
    "skills": Share(file_bytes=20 * MB, processor_s=10, wall_s=30.0),
    "front_matter": Share(file_bytes=8 * MB, processor_s=15),
    "crontab": Share(),
    "calendar": Share(file_bytes=12 * MB, processor_s=20, wall_s=40.0, lines=2_000, total_bytes=60 * MB),
    "calendar_edit": Share(file_bytes=3 * MB),
    "contacts": Share(file_bytes=30 * MB, processor_s=20, wall_s=40.0, lines=2_000),
    "mail_heads": Share(file_bytes=20 * MB, processor_s=20, wall_s=40.0, lines=2_000),
    "mail_text": Share(file_bytes=45 * MB, processor_s=20, wall_s=40.0, total_bytes=64 * MB),
}
