"""How well remembered facts are recalled: our own small table of facts and messages, person by person.

`make bench ARGS=recall` prints it. A message that needs facts counts as found when all of them came.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cortex.base import portable, tokens
from cortex.base.fact import RECALL_TOKENS, FactFit, KnownFact
from cortex.base.ids import digest
from cortex.selection.index.recall import listing, recalled

TABLE = Path(__file__).parent / "recall"


class RecallCase(Struct, frozen=True, kw_only=True):
    """A message of a person, and the facts of theirs that fit it: names of `facts`, none for a plain message."""

    text: str
    fits: tuple[str, ...]


class RecallPerson(Struct, frozen=True, kw_only=True):
    """A made-up person. `set`: tune (the rule was fitted on it), held (looked at once), blind (written after it)."""

    name: str
    set: str
    facts: tuple[KnownFact, ...]
    cases: tuple[RecallCase, ...]


def rows_digest() -> str:
    """What the rows that the weights were fitted on are known by; those of the set `blind` are none of them."""
    rows = (person for person in people() if person.set != "blind")
    return digest("\n".join(portable.dumps([person.facts, person.cases]) for person in rows))


class RecallScore(Struct, frozen=True, kw_only=True):
    """What came of a person's messages. Tokens: a message's mean, of those with a fit and of those without."""

    name: str
    set: str
    wanted: int
    found: int
    further: int
    plain: int
    burdened: int
    tokens_wanted: float
    tokens_plain: float

    @property
    def sentence(self) -> str:
        """The figures in words."""
        return (
            f"{self.name} ({self.set}): {self.found} of {self.wanted} messages carried every fact that fits, "
            f"with {self.further} further facts; {self.burdened} of {self.plain} plain messages carried any; "
            f"{self.tokens_wanted:.0f} and {self.tokens_plain:.1f} tokens a message"
        )


def people() -> Iterator[RecallPerson]:
    """The people of the table."""
    for path in sorted(TABLE.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for head in [row for row in rows if "facts" in row]:
            said = [row for row in rows if row["person"] == head["person"] and "text" in row]
            yield RecallPerson(
                name=head["person"],
                set=head["set"],
                facts=tuple(KnownFact(id=id, text=text, is_tainted=False) for id, text in head["facts"].items()),
                cases=tuple(RecallCase(text=row["text"], fits=tuple(row["fits"])) for row in said),
            )


def score(person: RecallPerson) -> RecallScore:
    """What the rule makes of this person's messages."""
    came = [(case, recalled(case.text, person.facts, RECALL_TOKENS, tokens.count)) for case in person.cases]
    wanted = [(case, fits) for case, fits in came if case.fits]
    plain = [fits for case, fits in came if not case.fits]
    ids = [({fit.id for fit in fits}, set(case.fits)) for case, fits in wanted]
    return RecallScore(
        name=person.name,
        set=person.set,
        wanted=len(wanted),
        found=sum(right <= got for got, right in ids),
        further=sum(len(got - right) for got, right in ids),
        plain=len(plain),
        burdened=sum(bool(fits) for fits in plain),
        tokens_wanted=_mean([fits for _, fits in wanted]),
        tokens_plain=_mean(plain),
    )


def _mean(came: Sequence[tuple[FactFit, ...]]) -> float:
    return sum(tokens.count(listing(fits)) for fits in came) / (len(came) or 1)
