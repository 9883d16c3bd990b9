import pytest

from cortex.base.errors import NotFound
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.learning import AllCasesRepository, AnswersRepository, CasesRepository
from cortex.storage.refits import RefitsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.still_clock import StillClock
from tests.storage.conftest import Written


async def note(db: Database, owner: str, turn: str, text: str | None = "water it") -> None:
    await db.repository(CasesRepository, owner).add(
        turn,
        "orchestrator",
        needed={"note_list": "rescued"},
        called=("note_list",),
        unused=(),
        text_hash="h",
        text=text,
    )


async def test_a_turn_teaches_once(db: Database, talk: Written) -> None:
    await talk.turn("t1")
    await note(db, talk.owner_id, "t1")
    await note(db, talk.owner_id, "t1", "said otherwise")
    (case,) = await db.repository(AllCasesRepository).recent(9)
    assert (case.turn_id, case.needed, case.called, case.text) == (
        "t1",
        {"note_list": "rescued"},
        ("note_list",),
        "water it",
    )


async def test_nobody_notes_a_case_of_another_persons_turn(db: Database, talk: Written, ben: str) -> None:
    await talk.turn("t1")
    with pytest.raises(NotFound):
        await note(db, ben, "t1")
    assert await db.repository(AllCasesRepository).recent(9) == []


async def test_words_that_are_taken_back_are_gone_and_others_stay(db: Database, talk: Written, ben: str) -> None:
    await talk.turn("t1")
    other = await db.repository(ConversationsRepository, ben).create(
        "orchestrator", "auto", "Ben's", is_title_tainted=False
    )
    await db.repository(TurnsRepository, ben).create(NewTurn("t2", other.id, "hello", **PLAIN_TURN))
    await note(db, talk.owner_id, "t1")
    await note(db, ben, "t2")
    await db.repository(CasesRepository, ben).forget_words()
    assert {case.turn_id: case.text for case in await db.repository(AllCasesRepository).recent(9)} == {
        "t1": "water it",
        "t2": None,
    }


async def test_only_ones_own_messages_are_read_back(db: Database, talk: Written, ben: str) -> None:
    await talk.turn("t1")
    await note(db, talk.owner_id, "t1", None)
    assert await db.repository(CasesRepository, talk.owner_id).said() == {"t1": "hello"}
    assert await db.repository(CasesRepository, ben).said() == {}


async def test_a_conversation_in_the_bin_teaches_nothing(db: Database, talk: Written) -> None:
    await talk.turn("t1")
    await note(db, talk.owner_id, "t1")
    await db.repository(ConversationsRepository, talk.owner_id).delete(talk.id)
    assert await db.repository(AllCasesRepository).recent(9) == []


async def test_an_answer_takes_the_place_of_an_earlier_one_and_can_be_taken_back(
    db: Database, ann: str, clock: StillClock
) -> None:
    answers = db.repository(AnswersRepository)
    await answers.put("note_list", "h", kind="", category="notes", text="x", by=ann)
    await answers.put("note_list", "h", kind="example", category="notes", text="x", by=ann)
    (answer,) = await answers.all()
    assert answer.kind == "example"
    assert await answers.remove(answer.id) == answer
    with pytest.raises(NotFound):
        await answers.remove(answer.id)


async def test_one_refit_at_most_is_in_force(db: Database, ann: str) -> None:
    refits = db.repository(RefitsRepository)
    assert await refits.in_force() is None
    numbers = [await refits.add("base", name, name.encode(), {"cases": 8}, ann) for name in ("one", "two")]
    assert numbers == [1, 2]
    for number in (1, 2):
        await refits.choose(number)
        found = await refits.in_force()
        assert found is not None
        assert found.number == number
    assert await refits.weights(2) == b"two"
    await refits.choose(0)
    assert await refits.in_force() is None
    with pytest.raises(NotFound):
        await refits.choose(7)
