"""Roles of one's own on their pages: made, copied, deleted after a look at what uses them, brought back."""

import pytest

from cortex.app import Cortex
from cortex.services.jobs.forms import JobForm
from tests.web.conftest import Browser
from tests.web.marks import marks

GONE = "The role “poet” no longer exists."


async def make(browser: Browser, **fields: str) -> None:
    answer = await browser.post(
        "/account/roles", **{"name": "poet", "source": "chat", "prompt": "Answer in verse.", **fields}
    )
    assert answer.status_code == 303, answer.text


async def test_a_member_makes_a_role_and_opens_it(house: Cortex, bob: Browser) -> None:
    form = (await bob.get("/account/roles/new?source=research")).text
    assert "Copy of research" in form
    assert "research" in marks(form).chosen
    assert ">admin<" not in form
    answer = await bob.post("/account/roles", name="Garden Helper", source="research", prompt="")
    assert answer.headers["location"] == "/account/roles/garden_helper"
    page = (await bob.get("/account/roles/garden_helper")).text
    assert "Its own list" in page
    assert "roles/garden_helper.md" in page
    assert "web_read" in await house.tools.permitted(bob.user, "garden_helper")
    assert "garden_helper" in (await bob.get("/account/roles")).text
    assert "garden_helper" in (await bob.get("/c/new")).text


async def test_an_admin_goes_on_to_the_whole_role(ada: Browser) -> None:
    answer = await ada.post("/account/roles", name="poet", source="", prompt="Answer in verse.")
    assert answer.headers["location"] == "/admin/roles/poet"
    page = (await ada.get("/admin/roles/poet")).text
    assert "only answers in" in page
    assert "roles/poet.md" in page
    await ada.post("/admin/roles/poet/tools", tools="tasks")
    assert "Its own list" in (await ada.get("/admin/roles/poet")).text
    assert "shipped default of" in (await ada.get("/admin/roles/research")).text


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "../up"}, "A name has 1 to 40 lower-case letters"),
        ({"name": "orchestrator"}, "There is a role &#39;orchestrator&#39; already"),
        ({"source": "admin"}, "There is no role &#39;admin&#39; any more"),
        ({"source": "", "prompt": " "}, "Enter a prompt, or choose a role"),
    ],
)
async def test_a_slip_keeps_what_was_typed(bob: Browser, fields: dict[str, str], says: str) -> None:
    typed = {"name": "poet", "source": "chat", "prompt": "Answer in verse.", **fields}
    answer = await bob.post("/account/roles", **typed)
    assert answer.status_code == 422
    assert says in answer.text
    assert typed["prompt"].strip() in answer.text


async def test_deleting_says_what_uses_it_and_can_be_taken_back(house: Cortex, ada: Browser) -> None:
    await make(ada)
    talk = await house.conversations.new(ada.user, role="poet")
    await house.conversations.rename(ada.user, talk.id, "On autumn")
    question = (await ada.get("/account/roles/poet/delete")).text
    assert "1 conversation uses it" in question
    assert f'<a href="/c/{talk.id}">On autumn</a>' in question
    assert '<option value="research"' in question
    assert '<option value="poet"' not in question
    answer = await ada.post("/account/roles/poet/delete", to="research")
    assert answer.headers["location"] == "/account/roles"
    assert (await house.conversations.get(ada.user, talk.id)).role == "research"
    page = (await ada.get("/account/roles")).text
    assert "/account/roles/poet/restore" in marks(page).forms
    assert "/account/roles/poet/restore" in marks(await ada.get("/admin/roles")).forms
    await ada.post("/account/roles/poet/restore")
    assert (await house.conversations.get(ada.user, talk.id)).role == "poet"
    assert (await ada.get("/account/roles/poet")).status_code == 200
    assert (await ada.post("/account/roles/poet/delete", to="nowhere")).status_code == 422


async def test_a_role_that_ships_or_is_anothers_has_no_way_to_be_deleted(ada: Browser, bob: Browser) -> None:
    await make(bob)
    for role in ("orchestrator", "poet"):
        assert (await ada.get(f"/account/roles/{role}/delete")).status_code == 404
        assert (await ada.post(f"/account/roles/{role}/delete")).status_code == 404
        assert (await ada.post(f"/account/roles/{role}/restore")).status_code == 404
    assert "/delete" not in (await ada.get("/account/roles/orchestrator")).text
    assert "cannot be deleted" in (await ada.get("/account/roles/orchestrator")).text


async def test_a_conversation_without_its_role_offers_the_others(house: Cortex, ada: Browser) -> None:
    await make(ada)
    talk = await house.conversations.new(ada.user, role="poet")
    assert GONE not in (await ada.get(f"/c/{talk.id}")).text
    await ada.post("/account/roles/poet/delete")
    page = (await ada.get(f"/c/{talk.id}")).text
    assert GONE in page
    assert "Your messages stay" in page
    assert (await ada.post(f"/c/{talk.id}/role", role="wizard")).status_code == 422
    assert (await ada.post(f"/c/{talk.id}/role", role="research")).status_code == 303
    page = (await ada.get(f"/c/{talk.id}")).text
    assert "any more" not in page
    assert (await house.conversations.get(ada.user, talk.id)).role == "research"


async def test_a_new_chat_never_begins_in_another_role_than_the_one_that_was_set(house: Cortex, ada: Browser) -> None:
    await house.preferences.change(ada.user, {"role": "poet"}, roles=("poet",))
    page = (await ada.get("/c/new")).text
    assert ("poet" in marks(page).chosen, "poet (deleted)" in page) == (True, True)
    assert GONE in page


async def test_names_that_name_nothing_are_said_on_the_pages(house: Cortex, ada: Browser) -> None:
    folder = house.settings.home / ada.user.id / "roles"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\ntools: [tasks, webb]\nmodels: [lost]\n---\nHi\n")
    for place in ("/account/roles/mine", "/admin/roles/mine", "/health"):
        page = (await ada.get(place)).text
        assert "&#39;webb&#39;" in page, place
        assert "&#39;web&#39;?" in page, place
        assert "&#39;lost&#39;" in page, place
    for place in ("/account/roles", "/admin/roles"):
        assert "that does not" in (await ada.get(place)).text


async def test_a_job_that_names_a_role_that_is_gone_shows_it(house: Cortex, ada: Browser) -> None:
    await make(ada)
    job = await house.jobs.add(ada.user, JobForm(name="Verse", prompt="A verse", when="every day at 9", role="poet"))
    await ada.post("/account/roles/poet/delete")
    page = (await ada.get(f"/jobs/{job.id}")).text
    assert ("poet" in marks(page).chosen, "poet (deleted)" in page) == (True, True)
