"""Notes and the scratchpad: nothing that anybody wrote is lost."""

from cortex.app import Cortex
from cortex.storage.home import Home
from tests.web.conftest import Browser


async def test_a_new_note_is_opened_and_kept_as_a_file(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/notes", name="Garden plan")
    assert answer.headers["location"] == "/notes/Garden%20plan"
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


async def test_deleting_asks_first(house: Cortex, ada: Browser) -> None:
    await house.notes.create(ada.user, "Plan")
    assert 'action="/notes/Plan/delete"' in (await ada.get("/notes/Plan/delete")).text
    await ada.post("/notes/Plan/delete")
    assert await house.notes.list(ada.user) == []


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
