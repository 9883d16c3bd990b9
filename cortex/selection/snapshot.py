"""The registry as selection sees it, with what each form costs. Counts tokens here, once, so that no plan has to."""

from dataclasses import replace
from functools import lru_cache

from cortex.base import tokens
from cortex.selection.signatures import signature
from cortex.selection.types import META, Domain, Example, Snapshot, ToolEntry, Trigger
from cortex.toolkit.registry import Registry, ToolSet
from cortex.toolkit.spec import Category, Tool

SEPARATOR = 1


def snapshot_of(registry: Registry) -> Snapshot:
    """The snapshot of what the registry holds now, made once; its version is the registry's. Loads the vocabulary."""
    return _snapshot(registry.held)


@lru_cache(maxsize=2)
def _snapshot(held: ToolSet) -> Snapshot:
    entries = tuple(_entry(tool) for tool in held.tools.values())
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
        tokens_line=tokens.count(line) + SEPARATOR,
    )
    return replace(made, tokens_signature=_noted(made))


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
        tokens_line=tokens.count(tool.line) + SEPARATOR,
        tokens_name=tokens.count(f" {tool.name}") + SEPARATOR,
        is_admin=tool.admin,
        is_core=tool.policy == "core",
        is_ambient=tool.ambient,
        is_meta=tool.category == META,
        tokens_compact=tokens.count_schema(replace(tool.stub, description="")) + SEPARATOR,
    )
    return replace(made, tokens_signature=_noted(made))


def _noted(entry: ToolEntry) -> int:
    return tokens.count(f"- {signature(entry)}") + SEPARATOR


def _domain(category: Category) -> Domain:
    line = f"{category.name}: {category.summary}\n"
    return Domain(
        name=category.name,
        summary=category.summary,
        triggers=tuple(
            Trigger(text=phrase.text, weight=phrase.weight, tools=phrase.tools, unless=phrase.unless)
            for phrase in category.phrases
        ),
        examples=_examples(category.examples),
        tokens=tokens.count(line),
        tokens_name=tokens.count(f", {category.name}"),
    )


def _examples(told: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[Example, ...]:
    return tuple(Example(text=said, tools=wanted) for said, wanted in told)
