"""The registry as selection sees it, with what each form costs. Counts tokens here, once, so that no plan has to."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

from msgspec.structs import replace

from cortex.base import scan, tokens
from cortex.base.record import field_names
from cortex.selection.types import META, Domain, Example, Snapshot, ToolEntry
from cortex.toolkit.examples import Utterances
from cortex.toolkit.registry import Registry, ToolSet
from cortex.toolkit.spec import Category, Tool

SEPARATOR = 1
_before: dict[str, tuple[Tool, ToolEntry]] = {}


def snapshot_of(registry: Registry) -> Snapshot:
    """The snapshot of what the registry holds now, made once; its version is the registry's. Loads the vocabulary."""
    return snapshot_of_set(registry.held)


@lru_cache(maxsize=2)
@scan.uncollected()  # of 10,000 tools a third of the time went into looks for garbage
def snapshot_of_set(held: ToolSet) -> Snapshot:
    """The snapshot of these tools, made once; a tool that the last such set had is not counted again."""
    before = dict(_before)
    found = {name: (tool, _entry(before.get(name), tool)) for name, tool in held.tools.items()}
    _before.clear()
    _before.update(found)
    entries = tuple(entry for _, entry in found.values())
    domains = tuple(_domain(category) for category in held.categories.values() if category.name != META)
    return Snapshot(
        version=held.version,
        entries=entries,
        domains=domains,
        several=_examples(held.several),
        none=_examples(held.none),
    )


def described(entry: ToolEntry, description: str) -> ToolEntry:
    """The same tool under other words, counted anew: the first line is its summary, the rest only the full form has."""
    summary = description.partition("\n")[0]
    told = {name: getattr(entry, name) for name in field_names(entry) if not name.startswith("tokens_")}
    told |= {"summary": summary, "line": f"{entry.name}: {summary.rstrip('.')}"}
    told |= {"full": replace(entry.full, description=description), "stub": replace(entry.stub, description=summary)}
    return _counted(**told)


class _Entry(ToolEntry, frozen=True, kw_only=True, dict=True):
    """A tool whose short forms are counted at their first use: of ten thousand tools few are ever sent in them."""

    @cached_property  # type: ignore[misc]  # in place of the field
    def tokens_stub(self) -> int:
        return tokens.count_schema(self.schema("stub")) + SEPARATOR

    @cached_property  # type: ignore[misc]  # in place of the field
    def tokens_compact(self) -> int:
        return tokens.count_schema(self.schema("compact")) + SEPARATOR

    @cached_property  # type: ignore[misc]  # in place of the field
    def tokens_signature(self) -> int:
        return tokens.count_once(f"- {self.signature}") + SEPARATOR


def _entry(before: tuple[Tool, ToolEntry] | None, tool: Tool) -> ToolEntry:
    if before and before[0] is tool:
        return before[1]
    return _counted(
        name=tool.name,
        category=tool.category,
        summary=tool.summary,
        line=tool.line,
        full=tool.full,
        stub=tool.stub,
        is_admin=tool.admin,
        is_core=tool.policy == "core",
        is_ambient=tool.ambient,
        is_meta=tool.category == META,
        is_grave=tool.is_grave,
    )


def _counted(**told: Any) -> ToolEntry:
    """The entry of these fields, what each plan asks of it counted."""
    return _Entry(
        **told,
        tokens_full=tokens.count_schema(told["full"]) + SEPARATOR,
        tokens_stub=0,  # counted above
        tokens_line=tokens.count_once(told["line"]) + SEPARATOR,
        tokens_name=tokens.count_once(f" {told['name']}") + SEPARATOR,
    )


def _domain(category: Category) -> Domain:
    line = f"{category.name}: {category.summary}\n"
    return Domain(
        name=category.name,
        summary=category.summary,
        examples=_examples(category.examples),
        tokens=tokens.count_once(line),
        tokens_name=tokens.count_once(f", {category.name}"),
    )


def _examples(told: Sequence[tuple[str, tuple[str, ...]]]) -> Sequence[Example]:
    return Utterances(told, lambda said, wanted: Example(text=said, tools=wanted)) if told else ()
