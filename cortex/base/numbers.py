"""Whole numbers as people and programs write them. Called wherever a form, a header or a stored text holds one."""

DIGITS_MOST = 18  # what a database keeps in eight bytes; Python itself refuses to read more than 4,300


def whole_number(text: str) -> int | None:
    """The number; None for anything but one to eighteen decimal digits, blanks around them aside."""
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) <= DIGITS_MOST else None
