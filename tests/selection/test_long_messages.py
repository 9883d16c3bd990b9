"""Messages of up to two million characters: they are planned, and what is looked at for them is bounded."""

import math
from collections.abc import Iterator, Mapping
from operator import mul
from weakref import ref

import pytest

from cortex.selection.index.index import Index, index_of
from cortex.selection.index.search import highest
from cortex.selection.pipeline import plan
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import RoleView, Snapshot, ToolPlan
from cortex.selection.votes import evidence, semantic_votes
from cortex.selection.words import meanings, text
from cortex.selection.words.known_words import KnownWords
from cortex.toolkit.mcp import McpServer, McpTool, mcp_category
from cortex.toolkit.registry import Registry
from tests.bench.catalogues import joined
from tests.selection.baseline_house import sent
from tests.selection.made import asked

MOST = 2_000_000  # bytes of a message
DAMP = McpTool(name="op_damp", description="Read the moisture of the greenhouse.", schema={})
WISH = "Tell me how damp the greenhouse is."
SENTENCE = "We sat by the fire and the rain fell on the roof. "
LIGATURE = "\ufdfa"  # a sign that is eighteen letters


class Row(dict[int, float]):
    """Scores that can be watched."""


@pytest.fixture(scope="module")
def grown(shipped: Snapshot) -> Snapshot:
    """The shipped tools and three hundred of a server."""
    others = (McpTool(name=f"op_{at}", description=f"Set valve {at} of line {at % 7}.", schema={}) for at in range(299))
    return joined(shipped, snapshot_of(Registry((mcp_category(McpServer(name="acme"), [DAMP, *others]),))))


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the texts whose words are looked up among all tools."""
    seen: list[str] = []
    shares = Index.shares

    def noted(index: Index, said: str) -> Mapping[int, float]:
        seen.append(said)
        return shares(index, said)

    monkeypatch.setattr(Index, "shares", noted)
    return seen


def planned(message: str, snapshot: Snapshot) -> ToolPlan:
    names = tuple(each.name for each in snapshot.entries)
    role = RoleView(name="house", tools=tuple(each.name for each in snapshot.domains))
    return plan(asked(message, snapshot=snapshot, ready=names, role=role, is_admin=True))


@pytest.mark.parametrize("sign", ["q", "8", LIGATURE], ids=["letters", "digits", "ligatures"])
def test_a_message_as_long_as_may_be_is_planned(grown: Snapshot, sign: str) -> None:
    word = f"{sign * 40} "
    message = word * (MOST // len(word.encode()))
    assert planned(message, grown).decisions


@pytest.mark.parametrize("sign", ["q", "0", "8", "j", LIGATURE])
def test_a_text_means_the_same_however_often_it_is_said(sign: str) -> None:
    word = f"{sign * 40} "
    once, often = meanings.shipped().vectors([word, word * (MOST // len(word))])
    assert math.hypot(*often) == pytest.approx(math.hypot(*once))
    assert sum(map(mul, once, often)) == pytest.approx(sum(map(mul, once, once)), abs=1e-4)


@pytest.mark.parametrize("ahead", [True, False], ids=["first", "last"])
def test_a_wish_at_either_end_of_a_long_message_is_heard(grown: Snapshot, ahead: bool) -> None:
    talk = SENTENCE * 20_000
    message = f"{WISH} {talk}" if ahead else f"{talk}{WISH}"
    assert "acme_op_damp" in sent(planned(message, grown))


def test_of_many_clauses_the_first_and_the_last_are_looked_up(grown: Snapshot, looked_up: list[str]) -> None:
    index = index_of(grown)
    message = ". ".join(f"Open valve {at} now" for at in range(150_000))
    semantic_votes.votes(index, message, index.names)
    assert len(looked_up) == 1 + evidence.FIRST_CLAUSES + evidence.LAST_CLAUSES
    assert max(map(len, looked_up)) <= text.BEGINNING + text.END + 1
    assert "Open valve 0 now" in looked_up
    assert " Open valve 149999 now" in looked_up


def test_of_an_ordinary_message_every_clause_is_looked_up() -> None:
    parts = [f"open valve {at} of the line" for at in range(evidence.FIRST_CLAUSES + evidence.LAST_CLAUSES)]
    assert [part.strip() for part in evidence.clauses(". ".join(parts))[1:]] == parts


def test_of_a_long_text_few_words_are_looked_up_to_see_whether_it_is_strange(shipped: Snapshot) -> None:
    model = index_of(shipped).model
    assert model is not None
    message = " ".join(f"{at:b}qqqqqq".translate({48: "x", 49: "z"}) for at in range(1 << 16, 1 << 17))
    before = KnownWords._knows.cache_info()
    assert model.known.is_strange(message)
    after = KnownWords._knows.cache_info()
    assert 0 < after.misses - before.misses < text.BEGINNING + text.END


def test_the_scores_of_two_clauses_need_not_stand_at_once() -> None:
    living: list[ref[Row]] = []

    def rows() -> Iterator[Row]:
        for at in range(5):
            row = Row({at: 1.0})
            living.append(ref(row))
            yield row
            del row
            assert sum(each() is not None for each in living) <= 1

    assert highest(rows()) == dict.fromkeys(range(5), 1.0)


def test_what_is_kept_of_a_message_is_small(grown: Snapshot) -> None:
    row = memoryview(index_of(grown).table.likeness(WISH))  # type: ignore[arg-type]  # an array, to whom it matters
    assert row.nbytes == 4 * len(grown.entries)
    kept = (Index.shares, semantic_votes._by_table)
    assert all((each.cache_info().maxsize or math.inf) <= 8 for each in kept)
