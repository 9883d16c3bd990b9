"""Limits of a day as forms write them: tokens as a whole number, dollars like 2.50. Pure; forms of services call it."""

import re

from cortex.base.errors import UserError
from cortex.base.numbers import whole_number

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
