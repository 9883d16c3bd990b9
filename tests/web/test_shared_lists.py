"""Sharing on the page: the owner chooses people and names, members leave, and each row says who did what."""

import asyncio
import re

import pytest

from cortex.app import Cortex
from cortex.base.errors import NotFound
from tests.patience import PATIENCE_S
from tests.web.conftest import Browser

THEIRS = "/tasks?list=shopping%20(Ada)"


@pytest.fixture
async def milk(house: Cortex, ada: Browser, bob: Browser) -> str:
    """The id of a task on Ada's list, which she shares with Bob by the form, and which he accepts by his."""
    task = await house.tasks.create(ada.user, "Milk", list_name="shopping")
    answer = await ada.post("/lists/share", name="shopping", people=bob.user.id)
    assert answer.headers["location"] == "/tasks?list=shopping"
    assert "once they accept" in (await ada.get("/tasks")).text
    (offered,) = await house.shared_lists.invitations(bob.user)
    answer = await bob.post(f"/lists/{offered.id}/accept")
    assert answer.headers["location"] == "/tasks?list=shopping+%28Ada%29"
    return task.id


async def test_each_sees_with_whom_and_who_added(ada: Browser, bob: Browser, milk: str) -> None:
    await bob.post("/tasks", title="Eggs", list_name="shopping (Ada)", back=THEIRS)
    hers, his = (await ada.get("/tasks?list=shopping")).text, (await bob.get(THEIRS)).text
    assert 'with <b dir="auto">Bob</b>' in hers
    assert "added by <bdi>Bob</bdi>" in hers
    assert 'with <b dir="auto">Ada</b>' in his
    assert "added by <bdi>Ada</bdi>" in his
    for page in ((await ada.get("/tasks")).text, (await ada.get(f"/tasks/{milk}")).text):
        assert "with <bdi>Bob</bdi>" in page


async def test_a_member_adds_changes_ticks_orders_and_deletes(
    house: Cortex, ada: Browser, bob: Browser, milk: str
) -> None:
    await bob.post("/tasks", title="Eggs", list_name="shopping (Ada)")
    await bob.post(f"/tasks/{milk}", version=1, title="Oat milk", list_name="shopping (Ada)")
    await bob.post(f"/tasks/{milk}/move", by=1)
    await bob.post(f"/tasks/{milk}/complete")
    (eggs,) = await house.tasks.list(ada.user)
    (done,) = await house.tasks.list(ada.user, is_done=True)
    assert (eggs.title, done.title, done.list_name, done.doer) == ("Eggs", "Oat milk", "shopping", "Bob")
    assert "done by <bdi>Bob</bdi>" in (await ada.get("/tasks?done=1")).text
    await bob.post(f"/tasks/{eggs.id}/delete", version=eggs.version)
    assert await house.tasks.list(ada.user) == []
    await bob.post(f"/tasks/{eggs.id}/restore")
    assert [task.adder for task in await house.tasks.list(ada.user)] == ["Bob"]


async def test_what_both_change_at_once_is_shown_to_the_later(ada: Browser, bob: Browser, milk: str) -> None:
    await ada.post(f"/tasks/{milk}", version=1, title="Oat milk", list_name="shopping")
    late = await bob.post(f"/tasks/{milk}", version=1, title="Soy milk", list_name="shopping (Ada)")
    assert late.status_code == 409
    assert ("<b>Oat milk</b>" in late.text, "shopping (Ada)" in late.text) == (True, True)
    assert 'value="Soy milk"' in late.text


async def test_only_its_owner_shares_and_names_a_list(house: Cortex, ada: Browser, bob: Browser, milk: str) -> None:
    for name in ("shopping", "shopping (Ada)"):
        assert (await bob.post("/lists/share", name=name, people=bob.user.id)).status_code == 404
        assert (await bob.post("/lists/rename", name=name, new_name="his")).status_code == 404
    assert "Leave list" in (await bob.get("/lists?name=shopping%20(Ada)")).text
    assert (await bob.get("/lists?name=shopping")).status_code == 404
    assert (await ada.post("/lists/rename", name="shopping", new_name="food")).status_code == 303
    assert "food (Ada)" in (await bob.get("/tasks")).text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "shopping", "new_name": " "}, "Enter a name for the list."),
        ({"name": "shopping", "new_name": "Inbox"}, "The inbox cannot be renamed"),
        ({"name": "shopping", "new_name": "garden"}, "You have a list &#39;garden&#39; already"),
    ],
    ids=["none", "inbox", "taken"],
)
async def test_a_name_that_cannot_be_is_said_beside_it(
    house: Cortex, ada: Browser, milk: str, fields: dict[str, str], said: str
) -> None:
    await house.tasks.create(ada.user, "Rake", list_name="garden")
    answer = await ada.post("/lists/rename", **fields)
    assert answer.status_code in (409, 422)
    assert said in answer.text
    assert 'aria-describedby="f-new_name-e' in answer.text


async def test_the_inbox_is_not_shared(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.tasks.create(ada.user, "Milk")
    answer = await ada.post("/lists/share", name="inbox", people=bob.user.id)
    assert answer.status_code == 422
    assert await house.tasks.lists(bob.user) == []


async def test_whoever_is_taken_out_sees_nothing_at_once(house: Cortex, ada: Browser, bob: Browser, milk: str) -> None:
    eggs = await house.tasks.create(bob.user, "Eggs", list_name="shopping (Ada)")
    await bob.post(f"/tasks/{eggs.id}/delete", version=1)
    await ada.post("/lists/share", name="shopping")
    (own,) = [one for one in await house.tasks.lists(ada.user) if one.name == "shopping"]
    assert own.with_whom == ()
    assert "Milk" not in (await bob.get("/tasks")).text
    for path in (f"/tasks/{milk}", f"/tasks/{milk}/complete", f"/tasks/{eggs.id}/restore"):
        assert (await bob.post(path, version=1, title="x")).status_code == 404
    refused = await bob.post("/tasks", title="For nobody", list_name="shopping (Ada)", back=THEIRS)
    assert refused.status_code == 422
    assert "no such list" in refused.text
    assert 'value="For nobody"' in refused.text


async def test_leaving_leaves_what_one_added(house: Cortex, ada: Browser, bob: Browser, milk: str) -> None:
    await house.tasks.create(bob.user, "Eggs", list_name="shopping (Ada)")
    (row,) = [one.shared for one in await house.tasks.lists(bob.user)]
    assert row
    await bob.post(f"/lists/{row.id}/leave")
    assert "You left" in (await bob.get("/tasks")).text
    assert await house.tasks.list(bob.user) == []
    assert [task.title for task in await house.tasks.list(ada.user)] == ["Milk", "Eggs"]
    with pytest.raises(NotFound):
        await house.shared_lists.leave(bob.user, row.id)


async def test_a_member_is_notified_once_of_a_list(house: Cortex, ada: Browser, bob: Browser, milk: str) -> None:
    await ada.post("/lists/share", name="shopping", people=bob.user.id)
    notices = (await house.notices.page(bob.user.id)).notices
    ((title, is_tainted),) = [(one.row.title, one.row.is_tainted) for one in notices]
    assert (title.endswith(": shopping"), is_tainted) == (True, True)
    assert "under To do" in notices[0].row.text, "the page is called so"


async def test_an_offer_that_was_answered_is_no_news(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.tasks.create(ada.user, "Rake", list_name="garden")
    await ada.post("/lists/share", name="garden", people=bob.user.id)
    offer = "wants to share a list with you: garden"
    assert offer in (await bob.get("/today")).text
    ((one, *_),) = [await house.shared_lists.invitations(bob.user)]
    await bob.post(f"/lists/{one.id}/accept")
    assert offer not in (await bob.get("/today")).text
    assert "· done" in (await bob.fragment("/notifications/panel")).text


async def test_an_offered_list_shows_nothing_until_it_is_accepted(house: Cortex, ada: Browser, bob: Browser) -> None:
    milk = await house.tasks.create(ada.user, "Milk", list_name="shopping", notes="Read this to Bob's assistant")
    await ada.post("/lists/share", name="shopping", people=bob.user.id)
    heard = await house.runtime.hub.changed(f"lists:{bob.user.id}", -1, 0.0)
    await ada.post("/tasks", title="Eggs", list_name="shopping")
    page = (await bob.get("/tasks")).text
    assert re.search(r'action="/lists/\w+/accept"', page)
    assert "Milk" not in page
    assert (list(await house.tasks.list(bob.user)), list(await house.tasks.lists(bob.user))) == ([], [])
    assert (await bob.post(f"/tasks/{milk.id}/complete")).status_code == 404
    assert (await bob.post("/tasks", title="x", list_name="shopping (Ada)")).status_code == 422
    assert await house.runtime.hub.changed(f"lists:{bob.user.id}", -1, 0.0) == heard
    assert len((await house.notices.page(bob.user.id)).notices) == 1
    assert "has not answered" in (await ada.get("/lists?name=shopping")).text
    (row,) = [one for one in await house.tasks.lists(ada.user) if one.name == "shopping"]
    assert row.with_whom == (), "who has not accepted is no reader"


async def test_a_declined_list_is_gone_and_can_be_offered_again(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.tasks.create(ada.user, "Milk", list_name="shopping")
    await ada.post("/lists/share", name="shopping", people=bob.user.id)
    (offered,) = await house.shared_lists.invitations(bob.user)
    assert (await ada.post(f"/lists/{offered.id}/accept")).status_code == 404, "nobody accepts for another"
    await bob.post(f"/lists/{offered.id}/decline")
    assert (await bob.post(f"/lists/{offered.id}/accept")).status_code == 404
    assert "wants to share" not in (await bob.get("/tasks")).text
    assert [one.is_invited for one in (await house.shared_lists.sharing(ada.user, "shopping")).people] == [False]
    await ada.post("/lists/share", name="shopping", people=bob.user.id)
    (again,) = await house.shared_lists.invitations(bob.user)
    assert (await bob.post(f"/lists/{again.id}/accept")).status_code == 303
    assert [task.title for task in await house.tasks.list(bob.user)] == ["Milk"]


async def test_an_offer_that_is_taken_back_cannot_be_accepted(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.tasks.create(ada.user, "Milk", list_name="shopping")
    await ada.post("/lists/share", name="shopping", people=bob.user.id)
    (offered,) = await house.shared_lists.invitations(bob.user)
    await ada.post("/lists/share", name="shopping")
    assert (await bob.post(f"/lists/{offered.id}/accept")).status_code == 404
    assert await house.tasks.list(bob.user) == []


async def test_open_pages_of_all_who_see_it_are_told(house: Cortex, ada: Browser, bob: Browser, milk: str) -> None:
    carol = (await house.accounts.add_user("Carol", "member", None)).user
    keys = {one.name: f"lists:{one.id}" for one in (ada.user, bob.user, carol)}
    hub = house.runtime.hub
    heard = {name: await hub.changed(key, -1, 0.0) for name, key in keys.items()}
    await bob.post("/tasks", title="Eggs", list_name="shopping (Ada)")
    for name in ("Ada", "Bob"):
        async with asyncio.timeout(PATIENCE_S):
            assert await hub.changed(keys[name], heard[name], PATIENCE_S) > heard[name]
    assert await hub.changed(keys["Carol"], -1, 0.0) == heard["Carol"]
