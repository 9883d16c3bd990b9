"""The registry as selection sees it, with what each form costs. Counts tokens here, once, so that no plan has to."""

from dataclasses import replace
from functools import lru_cache

from cortex.base import tokens
from cortex.selection.signatures import signature
from cortex.selection.types import META, Domain, Example, Snapshot, ToolEntry
from cortex.toolkit.registry import Registry, ToolSet
from cortex.toolkit.spec import Category, Tool

SEPARATOR = 1
_counted: dict[str, tuple[Tool, ToolEntry]] = {}


def snapshot_of(registry: Registry) -> Snapshot:
    """The snapshot of what the registry holds now, made once; its version is the registry's. Loads the vocabulary."""
    return snapshot_of_set(registry.held)


@lru_cache(maxsize=2)
def snapshot_of_set(held: ToolSet) -> Snapshot:
    """The snapshot of these tools, made once; a tool that the last such set had is not counted again."""
    before = dict(_counted)
    found = {name: (tool, _known(before.get(name), tool)) for name, tool in held.tools.items()}
    _counted.clear()
    _counted.update(found)
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
    line = f"{entry.name}: {summary.rstrip('.')}"
    full, stub = replace(entry.full, description=description), replace(entry.stub, description=summary)
    made = replace(
        entry,
        summary=summary,
        line=line,
        full=full,
        stub=stub,
        tokens_full=tokens.count_schema(full) + SEPARATOR,
        tokens_stub=tokens.count_schema(stub) + SEPARATOR,
        tokens_line=tokens.count_once(line) + SEPARATOR,
    )
    return replace(made, tokens_signature=_noted(made))


def _known(before: tuple[Tool, ToolEntry] | None, tool: Tool) -> ToolEntry:
    return before[1] if before and before[0] is tool else _entry(tool)


def _entry(tool: Tool) -> ToolEntry:
    made = ToolEntry(
        name=tool.name,
        category=tool.category,
        summary=tool.summary,
        line=tool.line,
        full=tool.full,
        stub=tool.stub,
        tokens_full=tokens.count_schema(tool.full) + SEPARATOR,
        tokens_stub=tokens.count_schema(tool.stub) + SEPARATOR,
        tokens_line=tokens.count_once(tool.line) + SEPARATOR,
        tokens_name=tokens.count_once(f" {tool.name}") + SEPARATOR,
        is_admin=tool.admin,
        is_core=tool.policy == "core",
        is_ambient=tool.ambient,
        is_meta=tool.category == META,
        is_grave=tool.is_grave,
        # Only a prior way sends it; of a server's tool the stub's cost stands in, so that ten thousand come sooner.
        tokens_compact=0 if tool.has_foreign_words else tokens.count_schema(replace(tool.stub, description="")) + 1,
    )
    return replace(made, tokens_signature=_noted(made))


def _noted(entry: ToolEntry) -> int:
    return tokens.count_once(f"- {signature(entry)}") + SEPARATOR


def _domain(category: Category) -> Domain:
    line = f"{category.name}: {category.summary}\n"
    return Domain(
        name=category.name,
        summary=category.summary,
        examples=_examples(category.examples),
        tokens=tokens.count_once(line),
        tokens_name=tokens.count_once(f", {category.name}"),
    )


def _examples(told: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[Example, ...]:
    return tuple(Example(text=said, tools=wanted) for said, wanted in told)
