"""The list of what was left out when an epoch opened: byte-stable, by domain, as long as its budget lets it be.

Lines (name and summary), else names by domain, else the domains with a word on each, else their names. What is
declared is not listed again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cortex.selection.rights import Rights
from cortex.selection.types import ToolEntry

BUDGET_TOKENS = 120
_HEAD = "More tools, had by tools_discover:"
_HEAD_TOKENS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogText:
    """The catalog's text and the sum of its parts in tokens."""

    text: str = ""
    tokens: int = 0


def catalog(rights: Rights, declared: Iterable[ToolEntry], budget_tokens: int = BUDGET_TOKENS) -> CatalogText:
    """The listing of the permitted tools but the declared ones, empty for none. The same tools give the same bytes."""
    shown = [entry for entry in declared if entry.name in rights.names]
    if len(shown) == len(rights.business):
        return CatalogText()
    taken: dict[str, list[ToolEntry]] = {}
    for entry in shown:
        taken.setdefault(entry.category, []).append(entry)
    filled = tuple(
        domain.name
        for domain in rights.domains
        if domain.name not in taken or len(rights.by_category[domain.name]) > len(taken[domain.name])
    )
    beside = [entry for name in filled for entry in taken.get(name, ())]
    count = sum(len(rights.by_category[name]) for name in filled) - len(beside)
    lines = _sum(rights.line_tokens, filled) - sum(entry.tokens_line for entry in beside) + 2 * count + _HEAD_TOKENS
    if lines <= budget_tokens:
        rows = [f"- {quoted(entry.name)}: {quoted(entry.summary)}" for entry in _left(rights, filled, taken)]
        return CatalogText(text="\n".join((_HEAD, *rows)), tokens=lines)
    names = _sum(rights.name_tokens, filled) - sum(entry.tokens_name for entry in beside) + count
    names += _HEAD_TOKENS + 3 * len(filled)
    if names <= budget_tokens:
        rows = [f"{name}: {', '.join(quoted(tool.name) for tool in _left(rights, [name], taken))}" for name in filled]
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


def _left(rights: Rights, names: Iterable[str], taken: Mapping[str, list[ToolEntry]]) -> list[ToolEntry]:
    """The tools of these domains that are not declared."""
    return [entry for name in names for entry in rights.by_category[name] if entry not in taken.get(name, ())]


def _sum(tokens: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(tokens[name] for name in names)


def quoted(words: str) -> str:
    """One line of plain words: what a tool's author wrote must not look like ours."""
    return " ".join(words.split())[:120]
