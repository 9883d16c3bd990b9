"""The list of what was left out when an epoch opened: byte-stable, by domain, as long as its budget lets it be.

Lines (name and summary), else names by domain, else the domains with a word on each, else their names. What is
declared is not listed again.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from cortex.selection.registry.rights import Rights
from cortex.selection.types import ToolEntry

BUDGET_TOKENS = 120
_HEAD = "More tools, had by tools_discover:"
_HEAD_TOKENS = 9


class CatalogText(Struct, frozen=True, kw_only=True):
    """The catalog's text and the sum of its parts in tokens."""

    text: str = ""
    tokens: int = 0


def catalog(rights: Rights, declared: Iterable[ToolEntry], budget_tokens: int = BUDGET_TOKENS) -> CatalogText:
    """The listing of the permitted tools but the declared ones, empty for none. The same tools give the same bytes."""
    shown = {entry.name: entry for entry in declared if entry.name in rights.names}
    if len(shown) == len(rights.business):
        return CatalogText()
    members, taken = rights.by_category, Counter(entry.category for entry in shown.values())
    filled = tuple(each.name for each in rights.domains if len(members[each.name]) > taken[each.name])
    beside = [entry for entry in shown.values() if entry.category in filled]
    count = sum(len(members[name]) for name in filled) - len(beside)
    lines = sum(rights.line_tokens[name] for name in filled) - sum(entry.tokens_line for entry in beside)
    lines += _HEAD_TOKENS + 2 * count
    if lines <= budget_tokens:
        left = (entry for name in filled for entry in members[name] if entry.name not in shown)
        rows = [f"- {quoted(entry.name)}: {quoted(entry.summary)}" for entry in left]
        return CatalogText(text="\n".join((_HEAD, *rows)), tokens=lines)
    names = sum(rights.name_tokens[name] for name in filled) - sum(entry.tokens_name for entry in beside)
    names += _HEAD_TOKENS + count + 3 * len(filled)
    if names <= budget_tokens:
        told = {name: [quoted(entry.name) for entry in members[name] if entry.name not in shown] for name in filled}
        rows = [f"{name}: {', '.join(left)}" for name, left in told.items()]
        return CatalogText(text="\n".join((_HEAD, *rows)), tokens=names)
    return _domains(rights, filled, budget_tokens)


@lru_cache(maxsize=64)
def _domains(rights: Rights, names: tuple[str, ...], budget_tokens: int) -> CatalogText:
    """These domains, with a word on each where there is room; hardly any message changes which."""
    filled = [domain for domain in rights.domains if domain.name in names]
    told = _HEAD_TOKENS + sum(domain.tokens for domain in filled)
    if told <= budget_tokens:
        rows = [f"{domain.name}: {quoted(domain.summary)}" for domain in filled]
        return CatalogText(text="\n".join((_HEAD, *rows)), tokens=told)
    bare = ", ".join(map(quoted, names))
    return CatalogText(text=f"{_HEAD} {bare}", tokens=_HEAD_TOKENS + sum(domain.tokens_name for domain in filled))


def quoted(words: str) -> str:
    """One line of plain words: what a tool's author wrote must not look like ours."""
    return " ".join(words.split())[:120]
