"""The list of what was left out when an epoch opened: byte-stable, by domain, as long as its budget lets it be.

Lines (name and summary), else names by domain, else the domains alone. What is declared is not listed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.selection.types import Domain, Entry

BUDGET_TOKENS = 220
LINES_BUDGET_TOKENS = 160
_HEAD = "More tools, had by tools_discover:"
_HEAD_TOKENS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The catalog's text and the sum of its parts in tokens."""

    text: str = ""
    tokens: int = 0


def catalog(entries: Sequence[Entry], domains: Sequence[Domain], budget_tokens: int = BUDGET_TOKENS) -> Listing:
    """The listing of these unsent tools, empty for none. The same tools give the same bytes."""
    business = [entry for entry in entries if not entry.is_meta]
    members = {domain.name: [entry for entry in business if entry.category == domain.name] for domain in domains}
    filled = [domain for domain in domains if members[domain.name]]
    listed = [entry for domain in filled for entry in members[domain.name]]
    if not listed:
        return Listing()
    lines = _HEAD_TOKENS + sum(entry.tokens_line + 2 for entry in listed)
    names = _HEAD_TOKENS + sum(entry.tokens_name + 1 for entry in listed) + 3 * len(filled)
    if lines <= min(LINES_BUDGET_TOKENS, budget_tokens):
        rows = [f"- {quoted(entry.name)}: {quoted(entry.summary)}" for entry in listed]
        return Listing(text="\n".join((_HEAD, *rows)), tokens=lines)
    if names <= budget_tokens:
        rows = [f"{each.name}: {', '.join(quoted(tool.name) for tool in members[each.name])}" for each in filled]
        return Listing(text="\n".join((_HEAD, *rows)), tokens=names)
    rows = [f"{domain.name}: {quoted(domain.summary)}" for domain in filled]
    return Listing(text="\n".join((_HEAD, *rows)), tokens=_HEAD_TOKENS + sum(domain.tokens for domain in filled))


def quoted(words: str) -> str:
    """One line of plain words: what a tool's author wrote must not look like ours."""
    return " ".join(words.split())[:120]
