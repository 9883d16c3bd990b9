"""What a server changes about how its tools are chosen, laid over the snapshot of those that ship. Pure.

What nobody changed stays the very same value: no form is counted again, and an index can tell what is new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType
from typing import Literal

from cortex.base import portable
from cortex.selection import text
from cortex.selection.snapshot import described
from cortex.selection.types import Domain, Example, Snapshot, ToolEntry, Trigger

Sending = Literal["always", "needed", "never"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordEdits:
    """What was done to the words of a category: its own ones, and the normal forms of shipped examples left out."""

    phrases: tuple[Trigger, ...] = ()
    examples: tuple[Example, ...] = ()
    no_examples: tuple[str, ...] = ()


NOTHING_SENT: Mapping[str, Sending] = MappingProxyType({})
NO_WORDS: Mapping[str, WordEdits] = MappingProxyType({})
NOTHING_SAID: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """`sending`: tool -> when it is sent, where that was changed. `words`: category -> what was done to its words.

    `descriptions`: tool -> what a model reads of it in place of the shipped words.
    """

    sending: Mapping[str, Sending] = field(default_factory=lambda: NOTHING_SENT)
    words: Mapping[str, WordEdits] = field(default_factory=lambda: NO_WORDS)
    descriptions: Mapping[str, str] = field(default_factory=lambda: NOTHING_SAID)


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
            changed[name] = _sent(changed.get(name, entries[name]), sending)
    domains = tuple(_reworded(domain, edits.words.get(domain.name), entries) for domain in snapshot.domains)
    if not changed and all(new is old for new, old in zip(domains, snapshot.domains, strict=True)):
        return snapshot
    facts = [
        snapshot.version,
        sorted((name, sending_of(entry)) for name, entry in changed.items()),
        sorted((name, entry.full.description) for name, entry in changed.items() if name in edits.descriptions),
        [portable.plain(domain) for domain, old in zip(domains, snapshot.domains, strict=True) if domain is not old],
    ]
    return replace(
        snapshot,
        version=blake2b(portable.dumps(facts).encode(), digest_size=8).hexdigest(),
        entries=tuple(changed.get(entry.name, entry) for entry in snapshot.entries),
        domains=domains,
    )


def with_weights(snapshot: Snapshot, weights: str) -> Snapshot:
    """The snapshot judged by this server's own model, under a version of its own."""
    version = blake2b(f"{snapshot.version} {weights}".encode(), digest_size=8).hexdigest()
    return replace(snapshot, version=version, weights=weights)


def with_encoder(snapshot: Snapshot, encoder: str) -> Snapshot:
    """The snapshot with this sentence model at hand, under a version of its own; the same snapshot for ""."""
    if not encoder:
        return snapshot
    version = blake2b(f"{snapshot.version} meant by {encoder}".encode(), digest_size=8).hexdigest()
    return replace(snapshot, version=version, encoder=encoder)


def _sent(entry: ToolEntry, sending: Sending) -> ToolEntry:
    return replace(entry, is_core=sending == "always", is_ambient=False, is_shy=sending == "never")


def _reworded(domain: Domain, words: WordEdits | None, entries: Mapping[str, ToolEntry]) -> Domain:
    """The domain with its words as this server has them; what speaks for tools that are gone is gone too."""
    if words is None:
        return domain
    no_examples = frozenset(words.no_examples)
    examples = [each for each in domain.examples if text.normal(each.text) not in no_examples]
    examples += [each for each in words.examples if all(name in entries for name in each.tools)]
    own = (each for each in words.phrases if all(name in entries for name in each.tools))
    made = replace(domain, triggers=(*domain.triggers, *own), examples=tuple(examples))
    return domain if made == domain else made
