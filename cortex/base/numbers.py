"""Numbers as people and programs write them: whole ones, and limits of a day in tokens and dollars. Pure.

Called wherever a form, a header or a stored text holds one.
"""

import re

from cortex.base.errors import UserError

DIGITS_MOST = 18  # what a database keeps in eight bytes; Python itself refuses to read more than 4,300


def whole_number(text: str) -> int | None:
    """The number; None for anything but one to eighteen decimal digits, blanks around them aside."""
    digits = text.strip()
    return int(digits) if digits.isdecimal() and len(digits) <= DIGITS_MOST else None


TOKENS_MOST, USD_MOST = 2_000_000_000, 1_000_000.0


def typed_tokens(typed: str, field: str = "limit_tokens") -> int | None:
    """The number of tokens; None for nothing. UserError for anything else."""
    text = re.sub(r"[\s,._']", "", typed)
    if not text:
        return None
    number = whole_number(text)
    if number is None or number > TOKENS_MOST:
        raise UserError("Tokens must be a whole number.", field=field)
    return number


def typed_dollars(typed: str, field: str = "limit_usd") -> float | None:
    """The dollars; None for nothing. UserError for anything else."""
    text = typed.strip().removeprefix("$").replace(",", ".")
    if not text:
        return None
    if not re.fullmatch(r"\d{1,7}(\.\d{1,6})?", text) or float(text) > USD_MOST:
        raise UserError("Write dollars like 2.50.", field=field)
    return float(text)


def in_words(tokens: int | None, usd: float | None) -> str:
    """Both limits, such as "$1.00 and 50,000 tokens a day"; "no limit" for none."""
    told = [f"${usd:.2f}"] if usd is not None else []
    told += [f"{tokens:,} tokens"] if tokens is not None else []
    return f"{' and '.join(told)} a day" if told else "no limit"
