"""Made-up tools by which a registry grows, as MCP servers would bring them: nobody in the scripts needs one."""

import random
from collections.abc import Iterator

from cortex.base import tokens
from cortex.base.messages import ToolSchema
from cortex.selection.types import Domain, Snapshot, ToolEntry
from tests.bench.catalogues import joined

_SERVICES = {
    "ledger": ("invoices and payments of a small firm", ("invoice", "payment", "supplier")),
    "stock": ("what lies in a warehouse", ("article", "shelf", "delivery")),
    "club": ("members of a sports club", ("member", "match", "team")),
    "fleet": ("cars of a company", ("vehicle", "driver", "trip")),
    "press": ("a newsletter", ("issue", "reader", "column")),
    "clinic": ("appointments of a practice", ("patient", "appointment", "referral")),
    "rent": ("flats that are let", ("flat", "tenant", "lease")),
}
_VERBS = {
    "find": ("Find {thing} entries by words and dates", ("words", "since", "until", "limit")),
    "show": ("Show one {thing} with all its fields", ("number", "with_history")),
    "add": ("Add a {thing} to the books", ("name", "date", "amount", "remark")),
    "change": ("Change fields of a {thing}", ("number", "field", "value", "reason")),
    "drop": ("Take a {thing} out of the books", ("number", "reason")),
}
_MEANING = {
    "words": ("string", "Words that must stand in the entry; empty for all of them."),
    "since": ("string", "First day, as YYYY-MM-DD."),
    "until": ("string", "Last day, as YYYY-MM-DD; empty for today."),
    "limit": ("integer", "How many entries at most, from 1 to 100."),
    "number": ("integer", "The entry's number, as a search shows it."),
    "with_history": ("boolean", "Whether earlier versions are shown too."),
    "name": ("string", "What it is called."),
    "date": ("string", "The day it belongs to, as YYYY-MM-DD."),
    "amount": ("number", "Its amount in euros, where it has one."),
    "remark": ("string", "A remark of one line."),
    "field": ("string", "Which field is changed."),
    "value": ("string", "What it says from now on."),
    "reason": ("string", "Why, for the record."),
}


def grown(snapshot: Snapshot, size: int, seed: int) -> Snapshot:
    """The snapshot with made-up tools in front of its meta tools, until it has `size` tools that are not meta."""
    count = sum(not entry.is_meta for entry in snapshot.entries)
    made = list(_tools())
    random.Random(seed).shuffle(made)  # noqa: S311 - made-up data, no secret
    more = sorted(made[: max(0, size - count)], key=lambda entry: entry.name)
    there = {entry.category for entry in more}
    domains = tuple(
        Domain(name=name, summary=summary, tokens=tokens.count(f"{name}: {summary}\n"))
        for name, (summary, _) in _SERVICES.items()
        if name in there
    )
    return joined(snapshot, Snapshot(version=f"{size}.{seed}", entries=tuple(more), domains=domains))


def _tools() -> Iterator[ToolEntry]:
    for service, (_, things) in _SERVICES.items():
        for thing in things:
            for verb, (summary, names) in _VERBS.items():
                yield _entry(service, f"{service}_{thing}_{verb}", summary.format(thing=thing), names)


def _entry(service: str, name: str, summary: str, arguments: tuple[str, ...]) -> ToolEntry:
    told = {one: {"type": _MEANING[one][0], "description": _MEANING[one][1]} for one in arguments}
    bare = {one: {"type": _MEANING[one][0]} for one in arguments}
    frame = {"type": "object", "required": [arguments[0]], "additionalProperties": False}
    full = ToolSchema(name=name, description=f"{summary}.", parameters={**frame, "properties": told})
    stub = ToolSchema(name=name, description=f"{summary}.", parameters={**frame, "properties": bare})
    line = f"{name}: {summary}"
    return ToolEntry(
        name=name,
        category=service,
        summary=summary,
        line=line,
        full=full,
        stub=stub,
        tokens_full=tokens.count_schema(full) + 1,
        tokens_stub=tokens.count_schema(stub) + 1,
        tokens_line=tokens.count(line) + 1,
        tokens_name=tokens.count(f" {name}") + 1,
    )
