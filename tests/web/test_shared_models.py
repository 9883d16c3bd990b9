"""Sharing a model in the browser: the admin's form, what a member sees of it, what the invitation says."""

import re
from typing import Any

import httpx

from cortex.app import Cortex
from cortex.base.messages import Usage
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.web.conftest import Browser
from tests.web.marks import marks

KEY = "sk-very-secret-4711"
MODEL = {
    "name": "Big",
    "provider": "openai",
    "model": "hidden-id",
    "base_url": "http://192.0.2.7:8080/v1",
    "api_key": KEY,
    "input_usd": "2",
}
GIVEN = "Big (from Ada)"
EVERYBODY = {"share": "everybody", "share_usd": "0.50"}


async def post(who: Browser, **fields: Any) -> httpx.Response:
    """A form some of whose fields may come several times."""
    return await who.http.post("/models", data=fields)


async def test_a_new_model_is_the_admins_alone_until_they_say_otherwise(ada: Browser, bob: Browser) -> None:
    page = (await ada.get("/models/new")).text
    assert re.search(r'<option value="" selected', page)
    assert marks(page).values["share_usd"] == "1.00"
    assert "You pay for" in page
    assert 'name="share"' not in (await bob.get("/models/new")).text
    await post(ada, **MODEL)
    assert GIVEN not in (await bob.get("/models")).text


async def test_a_member_sees_whose_it_is_before_sending_and_nothing_else_of_it(ada: Browser, bob: Browser) -> None:
    assert (await post(ada, **MODEL, **EVERYBODY)).status_code == 303
    given = (await ada.get("/models")).text
    assert ("$0.50 a day" in given, "key pays" in given) == (True, True)
    models = (await bob.get("/models")).text
    chat = (await bob.get("/c/new")).text
    assert "No models yet." not in models
    for shown in (GIVEN, "Ada&#39;s key", "$0.50 a day"):
        assert shown in models
    assert "Ada&#39;s key pays" in chat
    assert "Offline demo model" not in chat
    for path in ("/models", "/c/new", "/account/roles", "/usage", "/health", "/models/new"):
        page = (await bob.get(path)).text
        assert all(hidden not in page for hidden in (KEY, "192.0.2.7", "hidden-id")), path
    assert (await bob.get(f"/models/edit?name={GIVEN}")).status_code == 404
    assert (await bob.post("/models/test-saved", name=GIVEN)).status_code == 404
    assert (await bob.post(f"/models/remove?name={GIVEN}")).status_code == 404
    refused = await post(bob, **{**MODEL, "name": "mine"}, **EVERYBODY)
    assert refused.status_code == 403
    assert "Key" in (await ada.get("/models/edit?name=Big")).text
    assert KEY not in (await ada.get("/models/edit?name=Big")).text


async def test_people_are_chosen_with_a_limit_of_their_own(house: Cortex, ada: Browser, bob: Browser) -> None:
    lines = {"whom": [bob.user.id], "own_usd": ["0.25"], "own_tokens": [""]}
    await post(ada, **MODEL, share="people", share_usd="1", share_people=[bob.user.id], **lines)
    assert "Bob ($0.25 a day)" in (await ada.get("/models")).text
    page = (await ada.get("/models/edit?name=Big")).text
    assert bob.user.id in marks(page).chosen
    assert (await house.model_sharing.limits(bob.user)) == {GIVEN: "$0.25 a day"}
    refused = await post(ada, **MODEL, previous="Big", share="people", **lines)
    assert refused.status_code == 422
    assert "least one person" in refused.text
    assert 'value="people" selected' in refused.text
    await post(ada, **{**MODEL, "api_key": "", "previous": "Big"})
    assert GIVEN not in (await bob.get("/models")).text
    assert "is shared" not in (await ada.get("/models/remove?name=Big")).text


async def test_a_limit_that_holds_nothing_back_is_said(ada: Browser) -> None:
    gap, hint = "so its limit in dollars cannot hold", "so a limit in dollars cannot hold"
    await post(ada, **{**MODEL, "input_usd": ""})
    page = (await ada.get("/models/edit?name=Big")).text
    assert (gap in page, hint in page) == (False, True), "where it is set, before anybody has it"
    await post(ada, **{**MODEL, "input_usd": "", "previous": "Big"}, **EVERYBODY)
    assert gap in (await ada.get("/models/edit?name=Big")).text
    await post(ada, **{**MODEL, "input_usd": "", "previous": "Big"}, **EVERYBODY, share_tokens="50000")
    assert gap not in (await ada.get("/models/edit?name=Big")).text
    await post(ada, **{**MODEL, "previous": "Big"}, **EVERYBODY)
    page = (await ada.get("/models/edit?name=Big")).text
    assert (gap in page, hint in page) == (False, False)


async def test_an_invitation_says_what_the_invited_will_have(ada: Browser) -> None:
    assert "offline demo" in (await ada.get("/admin/users")).text
    await post(ada, **MODEL, **EVERYBODY)
    page = (await ada.post("/admin/users", name="Cleo", rank="member")).text
    assert page.count(f"<b>{GIVEN}</b> ($0.50 a day)") == 2, "beside the link, and above the form"
    assert "/welcome#" in page


async def test_what_was_taken_is_shown_to_both(house: Cortex, ada: Browser, bob: Browser) -> None:
    await post(ada, **MODEL, **EVERYBODY)
    cid = (await house.conversations.new(bob.user)).id
    db, owner = house.runtime.db, bob.user.id
    how: dict[str, Any] = {"mode": "chat", "role": "chat", "state": "done", "is_tainted": False, "reads": NOTHING_READ}
    await db.repository(TurnsRepository, owner).create(NewTurn("turn:t1", cid, "hello", **how))
    usage = Usage(input_tokens=900, output_tokens=100)
    rounds = db.repository(RoundsRepository, owner)
    await rounds.answered("turn:t1", 1, GIVEN, usage, 0.4, paid_by=ada.user.id)
    for page in ((await ada.get("/models/edit?name=Big")).text, (await ada.get("/usage")).text):
        assert "with your key" in page
        assert "$0.4000" in page
        assert "1,000" in page
    theirs = (await bob.get("/usage")).text
    assert GIVEN in theirs
    assert "80 %, almost used up" in theirs
    assert "by others" not in theirs
    assert "Ada&#39;s key" in (await bob.get("/runs/t1")).text
    assert GIVEN in (await ada.get("/usage?person=all")).text
    assert "the shared model" in (await ada.get("/admin/budgets")).text
