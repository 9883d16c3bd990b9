"""What the model is fitted on: the utterances of a snapshot, each with the tools it wants or why it wants none."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from cortex.selection.types import Snapshot
from cortex.selection.words import text


class LabelledUtterance(Struct, frozen=True, kw_only=True):
    """An utterance to learn from: the tools it wants, or the kind of no tool."""

    text: str
    tools: tuple[str, ...] = ()
    kind: str = ""


def utterances_of(snapshot: Snapshot) -> tuple[LabelledUtterance, ...]:
    """The snapshot's utterances, each wording once."""
    known = {entry.name for entry in snapshot.entries if not entry.is_meta}
    rows: dict[str, LabelledUtterance] = {}
    for example in (*(each for domain in snapshot.domains for each in domain.examples), *snapshot.several):
        tools = tuple(name for name in example.tools if name in known)
        rows.setdefault(text.normal(example.text), LabelledUtterance(text=example.text, tools=tools))
    for example in snapshot.none:
        rows.setdefault(text.normal(example.text), LabelledUtterance(text=example.text, kind=example.tools[0]))
    return tuple(row for row in rows.values() if row.tools or row.kind)


def examples_hash(told: Sequence[LabelledUtterance]) -> str:
    """Return what a model was fitted on, as a short key."""
    lines = sorted(f"{row.text}\t{' '.join(row.tools)}\t{row.kind}" for row in told)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
