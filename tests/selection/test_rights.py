"""What may be used: worked out once for a combination, anew for any other."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.selection.registry.rights import rights_of
from tests.selection.made import HOUSE, ROLE, asked, entry

ALL = replace(ROLE, tools=("all",), admin_tools=("all",))
AGENTS = replace(
    HOUSE, version="agents", entries=(*HOUSE.entries, entry("spawn_agent", "agents", "Start an agent", ("task",)))
)
GIVEN = replace(asked("hello"), role=ALL, snapshot=AGENTS, ready=tuple(each.name for each in AGENTS.entries))


def test_the_same_question_is_answered_once() -> None:
    assert rights_of(GIVEN) is rights_of(replace(GIVEN, message="another", turn="t9", round=2, model="other"))


@pytest.mark.parametrize(
    "changes",
    [
        {"snapshot": replace(AGENTS, version="fewer", entries=AGENTS.entries[2:])},
        {"ready": GIVEN.ready[1:]},
        {"role": replace(ALL, tools=("lamps",))},
        {"is_admin": True},
        {"channel": "agent"},
    ],
    ids=["registry", "what is ready", "role", "rank", "channel"],
)
def test_whatever_the_answer_depends_on_gives_another(changes: dict[str, Any]) -> None:
    before, after = rights_of(GIVEN), rights_of(replace(GIVEN, **changes))
    assert before.listed != after.listed
    assert before.digest != after.digest


def test_the_core_of_the_role_gives_another() -> None:
    cored = replace(GIVEN, role=replace(ALL, core=("repo_log", "tasks")))
    assert [each.name for each in rights_of(GIVEN).standing] == []
    assert [each.name for each in rights_of(cored).standing] == ["repo_log", "task_add", "task_show"]


def test_a_role_for_admins_permits_others_nothing() -> None:
    closed = replace(GIVEN, role=replace(ALL, is_admin_only=True))
    assert rights_of(closed).permitted == ()
    assert rights_of(replace(closed, is_admin=True)).names


def test_meta_tools_come_last_and_only_where_there_is_something_to_find() -> None:
    found = rights_of(GIVEN)
    assert [each.name for each in found.permitted[-2:]] == ["tools_discover", "tool_call"]
    assert not {"tools_discover", "tool_call"} & found.names
    assert rights_of(replace(GIVEN, role=replace(ALL, tools=()))).permitted == ()


def test_sums_are_those_of_the_permitted_tools() -> None:
    found = rights_of(replace(GIVEN, role=replace(ROLE, tools=("lamps", "task_add"))))
    assert found.listed == ("lamp_set", "lamp_get", "task_add")
    assert found.tokens == 3 * 140
    assert found.line_tokens == {"lamps": 24, "tasks": 12}
    assert found.name_tokens == {"lamps": 8, "tasks": 4}
    assert {name: len(entries) for name, entries in found.by_category.items()} == {"lamps": 2, "tasks": 1}


def test_what_is_ready_is_counted_whoever_asks() -> None:
    found = rights_of(replace(GIVEN, role=replace(ROLE, tools=())))
    assert (found.ready_count, found.ready_tokens) == (8, 8 * 140)
