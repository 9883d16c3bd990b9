"""What a server changes about how its tools are chosen, laid over the snapshot of those that ship. Pure.

What nobody changed stays the very same value: no form is counted again, and an index can tell what is new.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import portable
from cortex.selection.registry.snapshot import described
from cortex.selection.types import Domain, Example, Snapshot, ToolEntry, Trigger
from cortex.selection.words import text

Sending = Literal["always", "needed", "never"]


class WordEdits(Struct, frozen=True, kw_only=True):
    """The changes to the words of a category: its own ones, and the normal forms of shipped examples left out."""

    phrases: tuple[Trigger, ...] = ()
    examples: tuple[Example, ...] = ()
    no_examples: tuple[str, ...] = ()


class Edits(Struct, frozen=True, kw_only=True):
    """`sending`: tool -> when it is sent, where that was changed. `words`: category -> what was done to its words.

    `descriptions`: tool -> what a model reads of it in place of the shipped words.
    """

    sending: Mapping[str, Sending] = field(default_factory=dict)
    words: Mapping[str, WordEdits] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)


NO_EDITS = Edits()


def sending_of(entry: ToolEntry) -> Sending:
    """When a tool is sent as things stand."""
    if entry.is_shy:
        return "never"
    return "always" if entry.is_core or entry.is_ambient else "needed"


def edited(snapshot: Snapshot, edits: Edits) -> Snapshot:
    """The snapshot with the edits in force, under a version of its own; the same snapshot where they change nothing.

    Loads the vocabulary where a description was changed: its forms are counted anew.
    """
    entries = {entry.name: entry for entry in snapshot.entries}
    changed = {
        name: described(entries[name], words)
        for name, words in edits.descriptions.items()
        if name in entries and words != entries[name].full.description
    }
    for name, sending in edits.sending.items():
        if name in entries and sending != sending_of(entries[name]):
            entry, is_core = changed.get(name, entries[name]), sending == "always"
            changed[name] = replace(entry, is_core=is_core, is_ambient=False, is_shy=sending == "never")
    domains = tuple(_reworded(domain, edits.words.get(domain.name), entries) for domain in snapshot.domains)
    new = [domain for domain, old in zip(domains, snapshot.domains, strict=True) if domain is not old]
    if not changed and not new:
        return snapshot
    facts = [
        snapshot.version,
        sorted((name, sending_of(entry)) for name, entry in changed.items()),
        sorted((name, entry.full.description) for name, entry in changed.items() if name in edits.descriptions),
        portable.plain(new),
    ]
    every = tuple(changed.get(entry.name, entry) for entry in snapshot.entries)
    return replace(snapshot, version=_version(portable.dumps(facts)), entries=every, domains=domains)


def with_weights(snapshot: Snapshot, weights: str) -> Snapshot:
    """The snapshot judged by this server's own model, under a version of its own."""
    return replace(snapshot, version=_version(f"{snapshot.version} {weights}"), weights=weights)


def with_encoder(snapshot: Snapshot, encoder: str) -> Snapshot:
    """The snapshot with this sentence model at hand, under a version of its own; the same snapshot for ""."""
    version = _version(f"{snapshot.version} meant by {encoder}")
    return replace(snapshot, version=version, encoder=encoder) if encoder else snapshot


def _version(facts: str) -> str:
    return blake2b(facts.encode(), digest_size=8).hexdigest()


def _reworded(domain: Domain, words: WordEdits | None, entries: Mapping[str, ToolEntry]) -> Domain:
    """The domain with its words as this server has them; what speaks for tools that are gone is gone too."""
    if words is None:
        return domain
    gone = frozenset(words.no_examples)
    kept = (each for each in domain.examples if text.normal(each.text) not in gone)
    examples = (each for each in words.examples if entries.keys() >= set(each.tools))
    phrases = (each for each in words.phrases if entries.keys() >= set(each.tools))
    made = replace(domain, triggers=(*domain.triggers, *phrases), examples=(*kept, *examples))
    return domain if made == domain else made
