"""The words of a category: the effect is shown before anything is kept, and what is kept changes the next plan."""

import pytest
from markupsafe import escape

from cortex.app import Cortex
from cortex.storage.audit import AuditRepository
from cortex.storage.tool_settings import ToolSettingsRepository, ToolWordRow
from tests.web.conftest import Browser
from tests.web.marks import marks
from tests.web.test_tools import sent

PLACE = "/admin/tools/in/tasks"
ODD = "frobnicate zorblax"


async def test_the_effect_is_shown_and_nothing_is_kept(house: Cortex, ada: Browser) -> None:
    answer = await ada.post(PLACE, phrases="frobnicate [task_create]", messages=ODD, do="effect")
    assert answer.status_code == 200
    assert "What would change" in answer.text
    assert f"{ODD} <span" in " ".join(answer.text.split())
    assert "+ <code>task_create</code>" in answer.text
    assert "frobnicate [task_create]" in answer.text
    assert not await house.tool_settings.words("tasks")
    assert "task_create" not in await sent(house, ada, ODD)


async def test_saved_words_change_the_next_plan_for_everybody(house: Cortex, ada: Browser, bob: Browser) -> None:
    answer = await ada.post(
        PLACE, phrases="frobnicate [task_create]", examples="we lack bread", tool="task_create", do="save"
    )
    assert answer.headers["location"] == PLACE
    assert "task_create" in await sent(house, bob, ODD)
    page = (await ada.get(PLACE)).text
    assert "frobnicate [task_create]" in page
    assert "we lack bread [task_create]" in page
    assert ">frobnicate<" in (await ada.get("/admin/tools/task_create")).text
    assert 'id="t-task_create"' in (await ada.get("/admin/tools?q=frobnicate")).text
    await ada.post(PLACE, do="save")
    assert "task_create" not in await sent(house, bob, ODD)


async def test_what_was_added_and_taken_back_is_in_the_audit_log(house: Cortex, ada: Browser) -> None:
    await ada.post(PLACE, phrases="frobnicate", do="save")
    await ada.post(PLACE, phrases="frobnicate", do="save")
    await ada.post(PLACE, do="save")
    entries = await house.runtime.db.repository(AuditRepository).list(subject="tasks")
    assert [entry.action for entry in entries] == ["tool.words", "tool.words"]
    assert '"taken_back":[{"kind":"phrase"' in entries[0].detail
    assert '"added":[{"kind":"phrase"' in entries[1].detail


async def test_an_example_is_left_out_from_the_tools_page(house: Cortex, ada: Browser) -> None:
    said, (tool, *_) = house.runtime.registry.categories["tasks"].examples[0]
    page = (await ada.http.get(PLACE, params={"tool": tool, "no_example": said})).text
    assert f">{escape(said)}</textarea>" in page
    await ada.post(PLACE, no_examples=said, do="save")
    snapshot = await house.tools.snapshot()
    assert said not in [each.text for each in next(d for d in snapshot.domains if d.name == "tasks").examples]
    await ada.post(PLACE, do="save")
    assert await house.tools.snapshot() is (await house.tools.ground()).shipped


async def test_what_was_left_out_and_ships_no_more_is_no_obstacle(house: Cortex, ada: Browser) -> None:
    """As after an update to a version without that phrase and that example."""
    rows = [
        ToolWordRow(category="tasks", kind=kind, text="gone since", text_key="gone since", is_left_out=True)
        for kind in ("phrase", "example")
    ]
    await house.tool_settings.save_words(ada.user, "tasks", rows)
    shown = (await ada.get(PLACE)).text
    assert "gone since" not in shown
    assert (await ada.post(PLACE, phrases="frobnicate", do="save")).status_code == 303
    kept = await house.runtime.db.repository(ToolSettingsRepository).words("tasks")
    assert [word.text for word in kept] == ["frobnicate"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"phrases": "buy [git_log]"}, "no tool &#39;git_log&#39; in tasks"),
        ({"phrases": "?!"}, "contains no word"),
        ({"examples": "we lack bread"}, "Add in brackets which tool"),
        ({"examples": "we lack bread [nothing]"}, "no tool &#39;nothing&#39;"),
        ({"no_examples": "never said"}, "No shipped example of tasks"),
        ({"examples": f"{'long ' * 80}[task_create]"}, "too long"),
    ],
    ids=["a tool of another category", "no word", "no tool", "unknown tool", "no example", "too long"],
)
@pytest.mark.parametrize("do", ["effect", "save"])
async def test_a_line_that_says_nothing_is_refused_and_kept_in_the_form(
    house: Cortex, ada: Browser, fields: dict[str, str], told: str, do: str
) -> None:
    answer = await ada.post(PLACE, **fields, do=do)
    assert answer.status_code == 422
    assert told in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert not await house.tool_settings.words("tasks")


async def test_a_phrase_that_others_have_is_pointed_out(ada: Browser) -> None:
    await ada.post("/admin/tools/in/git", phrases="frobnicate", do="save")
    shown = (await ada.post(PLACE, phrases="frobnicate", do="effect")).text
    assert "other categories too" in shown
    assert "“frobnicate”: git" in shown


async def test_a_category_that_is_not_set_up_says_so_and_shows_its_effect_all_the_same(ada: Browser) -> None:
    page = (await ada.get("/admin/tools/in/ha")).text
    assert "Home Assistant is" in page
    assert "/admin/integrations#home_assistant" in marks(page).links
    shown = await ada.post("/admin/tools/in/ha", phrases="frobnicate [ha_get_state]", messages=ODD, do="effect")
    assert "+ <code>ha_get_state</code>" in shown.text


async def test_the_effect_alone_comes_as_a_fragment(ada: Browser) -> None:
    answer = await ada.http.post(
        PLACE,
        data={"phrases": "frobnicate [task_create]", "messages": ODD, "do": "effect"},
        headers={"HX-Request": "true", "HX-Request-Type": "partial"},
    )
    assert "What would change" in answer.text
    assert "<textarea" not in answer.text


@pytest.mark.parametrize("category", ["nothing", "meta"])
async def test_a_category_that_has_no_words_is_not_there(ada: Browser, category: str) -> None:
    assert (await ada.get(f"/admin/tools/in/{category}")).status_code == 404
    assert (await ada.post(f"/admin/tools/in/{category}", do="save")).status_code == 404
