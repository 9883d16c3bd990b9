"""Notes and the scratchpad: nothing that anybody wrote is lost."""

import pytest

from cortex.app import Cortex
from cortex.base.errors import Conflict
from cortex.base.note_names import SCRATCHPAD
from cortex.services.content.notes import UNDO
from cortex.storage.home import ABSENT, Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from tests.web.conftest import Browser
from tests.web.marks import marks


async def test_a_new_note_is_opened_and_kept_as_a_file(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/notes", name="Garden plan")
    assert answer.headers["location"] == "/notes/Garden%20plan?edit=1"
    assert (await Home(house.settings.home, ada.user.id).read("notes/Garden plan.md")).text == "# Garden plan\n"
    assert "Garden plan" in (await ada.fragment("/notes")).text


async def test_names_that_no_file_can_have_are_refused(ada: Browser) -> None:
    for name in ("", "../persona", ".hidden", "a/b"):
        assert (await ada.post("/notes", name=name)).status_code == 422


async def test_saving_over_a_change_shows_both_and_loses_neither(house: Cortex, ada: Browser) -> None:
    await house.notes.create(ada.user, "Plan")
    before = await house.notes.read(ada.user, "Plan")
    await house.notes.write(ada.user, "Plan", "theirs", before.version)
    answer = await ada.post("/notes/Plan", text="mine", version=before.version)
    assert answer.status_code == 409
    assert "theirs" in answer.text
    assert "mine" in answer.text
    now = await house.notes.read(ada.user, "Plan")
    assert now.text == "theirs"
    await ada.post("/notes/Plan", text="mine", version=now.version)
    assert (await house.notes.read(ada.user, "Plan")).text == "mine"


async def test_deleting_asks_first_and_can_be_undone_for_a_day(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.notes.create(ada.user, "Plan")
    before = await house.notes.read(ada.user, "Plan")
    assert "/notes/Plan/delete" in marks(await ada.get("/notes/Plan/delete")).forms
    await ada.post("/notes/Plan/delete")
    assert await house.notes.list(ada.user) == []
    page = (await ada.get("/notes")).text
    assert "Deleted: Plan" in page
    assert "/notes/Plan/restore" in marks(page).forms
    assert (await bob.post("/notes/Plan/restore")).status_code == 404
    await ada.post("/notes/Plan/restore")
    assert (await house.notes.read(ada.user, "Plan")).text == before.text
    assert (await ada.post("/notes/Plan/restore")).status_code == 404
    await ada.post("/notes/Plan/delete")
    await ada.post("/notes", name="Plan")
    assert (await ada.post("/notes/Plan/restore")).status_code == 422
    await house.notes.prune(ada.user.id, house.runtime.clock() + UNDO)
    assert await house.notes.deleted(ada.user) == []
    assert [note.name for note in await house.notes.list(ada.user)] == ["Plan"]


async def test_a_note_is_read_rendered_and_edited_on_demand(house: Cortex, ada: Browser) -> None:
    await house.notes.create(ada.user, "Plan")
    page = (await ada.get("/notes/Plan?edit=1")).text
    version = marks(page).values["version"]
    assert 'id="f-text"' in page
    saved = await ada.post("/notes/Plan", text="# Beds\n\n- **beans**\n- <b>peas</b>\n", version=version)
    assert saved.headers["location"] == "/notes/Plan"
    read = (await ada.get("/notes/Plan")).text
    assert ("<strong>beans</strong>" in read, "<b>peas</b>" in read, 'id="f-text"' in read) == (True, False, False)
    assert "/notes/Plan?edit=1" in marks(read).links
    assert 'data-line="3"' in (await ada.get("/notes/Plan?line=3")).text, "a search still leads to the line"


async def test_the_scratchpad_is_saved_and_shown(house: Cortex, ada: Browser) -> None:
    await ada.post("/scratchpad", text="call the plumber", version="")
    assert "call the plumber" in (await ada.get("/scratchpad")).text
    stale = await ada.post("/scratchpad", text="other words", version="")
    assert stale.status_code == 409
    assert (await house.notes.scratchpad(ada.user)).text == "call the plumber"


async def test_what_the_assistant_keeps_can_be_read_and_cleared(house: Cortex, ada: Browser) -> None:
    await Home(house.settings.home, ada.user.id).write("agent_notes/coder.md", "likes <i>tabs</i>")
    assert "likes &lt;i&gt;tabs" in (await ada.get("/agent-notes/coder")).text
    await ada.post("/agent-notes/coder/clear")
    assert (await ada.get("/agent-notes/coder")).status_code == 404


async def test_what_a_person_saves_on_the_scratchpad_is_marked_as_from_outside_no_more(
    house: Cortex, ada: Browser
) -> None:
    preferences = house.runtime.db.repository(PreferencesRepository, ada.user.id)
    version = await house.notes.write_scratchpad(ada.user, "found on a page", ABSENT)
    await preferences.set(mark_of(SCRATCHPAD), True)
    with pytest.raises(Conflict):
        await house.notes.write_scratchpad(ada.user, "mine", ABSENT)
    assert await preferences.get(mark_of(SCRATCHPAD)) is True
    await house.notes.write_scratchpad(ada.user, "mine", version)
    assert await preferences.get(mark_of(SCRATCHPAD)) is None
