"""What a house teaches acts at the next message, with the weights as they are and the gates as they judge."""

import pytest
from msgspec.structs import replace

from cortex.app import shipped_registry
from cortex.selection.pipeline import plan
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import Domain, Example, Snapshot, ToolPlan, Trigger
from cortex.services.tools.edits import Edits, WordEdits, edited
from tests.selection.garden import GARDEN, garden
from tests.selection.made import ROLE, asked, business

FROGS = Example(text="frogs croak loudly tonight", tools=("pump_stop",), is_own=True)
CONCERT = Trigger(text="frog concert", tools=("pump_stop",))


def taught(version: str, triggers: tuple[Trigger, ...] = (), examples: tuple[Example, ...] = ()) -> Snapshot:
    pumps, *others = GARDEN.domains
    mine = Domain(
        name=pumps.name,
        summary=pumps.summary,
        tokens=pumps.tokens,
        triggers=(*pumps.triggers, *triggers),
        examples=(*pumps.examples, *examples),
    )
    return garden(version, domains=(mine, *others))


def planned(message: str, snapshot: Snapshot) -> ToolPlan:
    given = replace(asked(message), snapshot=snapshot, ready=tuple(each.name for each in snapshot.entries))
    return plan(replace(given, role=replace(ROLE, tools=("all",))))


def sent(message: str, snapshot: Snapshot) -> list[str]:
    return business([item.name for item in planned(message, snapshot).sent])


def score(message: str, snapshot: Snapshot, tool: str = "pump_stop") -> float:
    return next(each.score for each in planned(message, snapshot).decisions if each.name == tool)


@pytest.mark.parametrize(
    ("message", "tool"),
    [
        ("please fire up the pond pump", "pump_start"),
        ("sow some beans", "seed_sow"),
        ("google slug traps", "web_search"),
    ],
)
def test_the_model_sends_what_it_learned(message: str, tool: str) -> None:
    assert tool in sent(message, garden())


@pytest.mark.parametrize("message", ["hello dear machine", "good morning my friend", "tell me a tale of a mole"])
def test_the_model_sends_nothing_for_talk(message: str) -> None:
    assert sent(message, garden()) == []


@pytest.mark.parametrize(
    "message", ["frog concert", "good morning my friend, frog concert", "thanks a lot for the frog concert"]
)
def test_a_phrase_of_the_house_acts_at_once(message: str) -> None:
    snapshot = taught("phrase", triggers=(CONCERT,))
    assert score(message, garden()) < 0.5 < score(message, snapshot)
    assert "pump_stop" in sent(message, snapshot)


@pytest.mark.parametrize("message", ["frogs croak loudly tonight", "my frogs croak loudly tonight again"])
def test_an_utterance_of_the_house_acts_at_once(message: str) -> None:
    snapshot = taught("utterance", examples=(FROGS,))
    assert score(message, garden()) < 0.5 < score(message, snapshot)
    assert "pump_stop" in sent(message, snapshot)


def test_the_same_words_in_the_shipped_files_wait_for_a_fit() -> None:
    shipped = replace(FROGS, is_own=False)
    assert sent(FROGS.text, taught("shipped", examples=(shipped,))) == sent(FROGS.text, garden())


def test_what_was_taught_for_one_tool_brings_no_other() -> None:
    before, after = (
        sent("hello dear machine", garden()),
        sent("hello dear machine", taught("more", (CONCERT,), (FROGS,))),
    )
    assert before == after


# --- by the words of a house, among all the tools that ship ---------------------------------------------------------

ZORBLAX = ("Zorblax, up with you", "Zorblax please, two rounds", "let Zorblax run", "a long one for Zorblax")


@pytest.fixture(scope="module")
def shipped() -> Snapshot:
    return snapshot_of(shipped_registry())


def with_zorblax(shipped: Snapshot) -> Snapshot:
    told = tuple(Example(text=said, tools=("notes_append",), is_own=True) for said in ZORBLAX)
    return edited(shipped, Edits(words={"notes": WordEdits(examples=told)}))


@pytest.mark.parametrize("message", ["could Zorblax get going", "somebody wake Zorblax", "Zorblax first, then we talk"])
def test_a_name_of_the_house_finds_its_tool_in_other_words(shipped: Snapshot, message: str) -> None:
    assert "notes_append" not in sent(message, shipped)
    assert "notes_append" in sent(message, with_zorblax(shipped))


@pytest.mark.parametrize("message", ["up with you, my friend", "a long one please", "two rounds of applause for you"])
def test_the_common_words_of_what_was_taught_find_nothing(shipped: Snapshot, message: str) -> None:
    assert sent(message, with_zorblax(shipped)) == sent(message, shipped)
