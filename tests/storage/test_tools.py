from datetime import timedelta

import pytest
from sqlalchemy import text

from cortex.base.errors import NotFound
from cortex.storage.calls import CallRow, CallsRepository, CallState, ToolUsesRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.tool_settings import ToolCasesRepository, ToolSettingRow, ToolSettingsRepository, ToolWordRow
from tests.still_clock import StillClock
from tests.storage.conftest import Written

MILK = ToolWordRow(category="tasks", kind="phrase", text="Buy Milk", text_key="buy milk", tools=("task_create",))


async def test_what_was_set_for_a_tool_is_found_and_can_be_taken_back(db: Database) -> None:
    settings = db.repository(ToolSettingsRepository)
    await settings.set(ToolSettingRow(tool="web_read", is_on=False), "ann")
    await settings.set(ToolSettingRow(tool="web_read", is_on=False, sending="never"), "ann")
    await settings.set(ToolSettingRow(tool="git_log", asks_first=True, description="Look back."), "ann")
    assert list(await settings.all()) == [
        ToolSettingRow(tool="git_log", asks_first=True, description="Look back."),
        ToolSettingRow(tool="web_read", is_on=False, sending="never"),
    ]
    await settings.set(ToolSettingRow(tool="web_read"), "ann")
    assert [each.tool for each in await settings.all()] == ["git_log"]


async def test_the_number_grows_with_every_change_and_with_nothing_else(db: Database) -> None:
    settings = db.repository(ToolSettingsRepository)
    numbers = [await settings.number()]
    for _ in range(2):
        await settings.set(ToolSettingRow(tool="web_read", is_on=False), "ann")
        numbers.append(await settings.number())
    await settings.add_words([MILK], "ann")
    numbers.append(await settings.number())
    await settings.drop_words([MILK])
    numbers.append(await settings.number())
    await settings.all()
    await settings.words()
    assert numbers == [0, 1, 2, 3, 4]
    assert await settings.number() == 4


async def test_words_stand_once_a_category_and_kind(db: Database) -> None:
    settings = db.repository(ToolSettingsRepository)
    example = ToolWordRow(
        category="tasks", kind="example", text="buy milk", text_key="buy milk", tools=("task_create",)
    )
    elsewhere = ToolWordRow(category="notes", kind="example", text="buy milk", text_key="buy milk", is_left_out=True)
    await settings.add_words([MILK, example, elsewhere], "ann")
    again = ToolWordRow(category="tasks", kind="phrase", text="buy milk", text_key="buy milk")
    await settings.add_words([again], "ann")
    assert {(each.kind, each.tools) for each in await settings.words("tasks")} == {
        ("phrase", ()),
        ("example", ("task_create",)),
    }
    assert list(await settings.words("notes")) == [elsewhere]
    await settings.drop_words([again])
    assert [each.kind for each in await settings.words("tasks")] == ["example"]
    assert len(await settings.words()) == 2


async def test_cases_are_kept_and_removed_once(db: Database) -> None:
    cases = db.repository(ToolCasesRepository)
    first = await cases.add("add milk", "orchestrator", "member", ("task_create",), "ann")
    await cases.add("hello", "orchestrator", "admin", (), "ann")
    assert {(case.text, case.rank, case.tools) for case in await cases.all()} == {
        ("add milk", "member", ("task_create",)),
        ("hello", "admin", ()),
    }
    assert (await cases.remove(first.id)).text == "add milk"
    with pytest.raises(NotFound):
        await cases.remove(first.id)
    assert [case.text for case in await cases.all()] == ["hello"]


async def test_uses_are_counted_over_everybody_and_without_their_words(
    db: Database, ann: str, ben: str, talk: Written, clock: StillClock
) -> None:
    theirs = Written(
        db,
        ben,
        (await db.repository(ConversationsRepository, ben).create("orchestrator", "auto", is_title_tainted=False)).id,
    )
    await _called(db, talk, "a", "web_read", state="done")
    await _called(db, theirs, "b", "web_read", state="failed", is_rescued=True)
    await _called(db, theirs, "c", "web_read", state="refused", is_rescued=True)
    await _called(db, talk, "d", "git_log", state="unknown")
    uses = {use.name: use for use in await db.repository(ToolUsesRepository).by_tool(clock() - timedelta(days=1))}
    assert {name: (use.calls, use.rescued, use.failures) for name, use in uses.items()} == {
        "web_read": (2, 1, 1),
        "git_log": (1, 0, 1),
    }
    assert uses["web_read"].failed_at == clock()
    assert not await db.repository(ToolUsesRepository).by_tool(clock() + timedelta(days=1))
    last = await db.repository(ToolUsesRepository).of_tool("web_read")
    assert {(use.owner_id, use.state) for use in last} == {(ann, "done"), (ben, "failed"), (ben, "refused")}
    assert len(await db.repository(ToolUsesRepository).of_tool("web_read", limit=2)) == 2


async def _called(
    db: Database, talk: Written, id: str, name: str, *, state: CallState, is_rescued: bool = False
) -> None:
    turn = await talk.turn(f"turn:{id}")
    row = CallRow(
        id=id,
        turn_id=turn,
        conversation_id=talk.id,
        round=1,
        name=name,
        arguments="{}",
        arguments_hash="h",
        risk="low",
        is_rescued=is_rescued,
    )
    calls = db.repository(CallsRepository, talk.owner_id)
    await calls.decided(row)
    await calls.finish(id, state, text="what was said", is_error=state != "done", is_tainted=False)


async def test_moving_up_and_down_keeps_what_older_versions_know(db: Database, ann: str) -> None:
    await db.move_to("0001")
    async with db.session_scope() as session:
        await session.execute(
            text(
                "INSERT INTO conversations (id, owner_id, title, is_title_auto, role, mode, is_pinned, source, seq, "
                "turn_count, selection_state, created_at, updated_at) VALUES ('old', :ann, 'Old', :no, 'orchestrator', "
                "'auto', :no, 'chat', 0, 0, '{}', '2026-01-01 00:00:00', '2026-01-01 00:00:00')"
            ),
            {"ann": ann, "no": False},
        )
    await db.migrate()
    assert (await db.repository(ConversationsRepository, ann).get("old")).recipe == ""
    await db.repository(ConversationsRepository, ann).set_recipe("old", "all")
    await db.move_to("0001")
    await db.migrate()
    assert (await db.repository(ConversationsRepository, ann).get("old")).title == "Old"
