"""Try a message: every recipe beside the others, the chosen one step by step, and the list of checks."""

import re

from cortex.app import Cortex
from cortex.selection.recipes import RECIPES
from cortex.storage.tool_settings import ToolCasesRepository
from tests.web.conftest import Browser
from tests.web.marks import marks

PLACE = "/admin/tools/try"
MILK = "add milk to my shopping list"


async def test_every_recipe_stands_beside_the_others(ada: Browser) -> None:
    page = (await ada.post(PLACE, text=MILK)).text
    assert [name for name in RECIPES if f"<b>{name}</b>" not in page] == []
    assert "step: cortex" in page
    assert all(f"<b>{stage.name}</b>" in page for stage in RECIPES["cortex"])
    assert all(f">{stage.label}:</span>" in page for stage in RECIPES["cortex"])
    assert "task_create" in marks(page).values["expected"]


async def test_another_recipe_is_explained_and_a_member_has_less(ada: Browser) -> None:
    page = (await ada.post(PLACE, text="run df in the shell", recipe="inara", rank="member", is_assumed="1")).text
    assert "step: inara" in page
    assert ">shell_exec<" not in page
    assert ">shell_exec<" in (await ada.post(PLACE, text="run df in the shell", is_assumed="1")).text


async def test_what_is_off_stays_off_as_if_all_were_set_up(ada: Browser) -> None:
    await ada.post("/admin/tools/shell_exec", sending="needed")
    off = await ada.post(PLACE, text="run df in the shell", is_assumed="1")
    assert ">shell_exec<" not in off.text


async def test_what_a_message_lacks_here_is_told_with_the_way_to_it(ada: Browser) -> None:
    lights = "turn off the kitchen lights"
    tried, draft = await ada.post(PLACE, text=lights), await ada.post("/why", text=lights, mode="auto")
    for told in (tried.text, draft.text):
        assert "not set up" in told
        assert 'href="/admin/integrations#' in told
    other = await ada.post("/why", text="add milk to my list", mode="auto")
    assert "not set up" not in other.text


async def test_a_message_is_kept_run_and_removed(house: Cortex, ada: Browser) -> None:
    assert (await ada.post(PLACE, text=MILK, expected="task_create", do="keep")).status_code == 303
    await ada.post(PLACE, text="hello", expected="", do="keep")
    ran = (await ada.post(f"{PLACE}/run")).text
    assert "All 2 pass." in ran
    await ada.post("/admin/tools/task_create", sending="needed")
    ran = (await ada.post(f"{PLACE}/run")).text
    assert "1 of 2 fail." in ran
    assert re.search(r'class="minus">. <code>task_create</code>', ran)
    listed = await house.runtime.db.repository(ToolCasesRepository).all()
    await ada.post(f"{PLACE}/{listed[0].id}/remove")
    assert MILK not in (await ada.get(PLACE)).text
    assert (await ada.post(f"{PLACE}/{listed[0].id}/remove")).status_code == 404


async def test_nothing_wrong_is_kept(ada: Browser) -> None:
    assert (await ada.post(PLACE, text=" ")).status_code == 422
    assert (await ada.post(PLACE, text=MILK, recipe="soup")).status_code == 422
    assert (await ada.post(PLACE, text=MILK, rank="king")).status_code == 422
    assert (await ada.post(f"{PLACE}/run", recipe="soup")).status_code == 422
    refused = await ada.post(PLACE, text=MILK, expected="no_such_tool", do="keep")
    assert refused.status_code == 422
    assert "There is no" in refused.text
    assert "None yet." in (await ada.get(PLACE)).text


async def test_a_message_is_tried_for_another_person_and_their_model(house: Cortex, ada: Browser, bob: Browser) -> None:
    form = {"name": "small", "provider": "openai", "model": "qwen3", "base_url": "http://127.0.0.1:9/v1"}
    await house.models.save(ada.user, form)
    mine = (await ada.post(PLACE, text=MILK)).text
    assert all(part in mine for part in ("Ada (admin)", "role orchestrator", "model small", "profile local"))
    other = (await ada.post(PLACE, text="run df in the shell", user="Bob", profile="openai", is_assumed="1")).text
    assert all(part in other for part in ("Bob (member)", "role orchestrator", "model offline", "profile openai"))
    assert ">shell_exec<" not in other
    for field, value in (("user", "nobody"), ("model", "gpt"), ("profile", "gemini")):
        refused = await ada.post(PLACE, text=MILK, **{field: value})
        assert refused.status_code == 422
        assert f"try-{field}" in marks(refused).slips


async def test_what_is_open_to_some_alone_is_tried_for_these_alone(house: Cortex, ada: Browser, bob: Browser) -> None:
    card = {"host": "127.0.0.1", "port": "9", "user": "reader", "password": "test-only", "schemas": "shop"}
    await house.integrations.save(ada.user, "aether_db", "shop", card, is_new=True)
    form = {"text": "which tables are in the database?", "user": "Bob"}
    assert "<code>ae_db_" in (await ada.post(PLACE, **form)).text
    await house.integrations.share(ada.user, "aether_db", "shop", [], [ada.user.id])
    assert "<code>ae_db_" not in (await ada.post(PLACE, **form)).text
    assert "<code>ae_db_" in (await ada.post(PLACE, **{**form, "user": "Ada"})).text


async def test_a_model_that_takes_no_tools_is_tried_without(house: Cortex, ada: Browser) -> None:
    form = {"name": "plain", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "tools": False}
    await house.models.save(ada.user, form)
    page = (await ada.post(PLACE, text=MILK)).text
    assert "take none" in page
    assert "chat only" in page
