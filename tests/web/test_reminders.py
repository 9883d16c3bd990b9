"""The reminders page: what a person reads before and after saving, and what their forms change."""

import re
from datetime import timedelta

import httpx
import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.services.reminders.due import DueReminders, Waking
from cortex.services.reminders.reminders import ReminderRow
from cortex.storage.reminders import RemindersRepository
from tests.web.conftest import Browser
from tests.web.marks import marks


async def due_now(house: Cortex, who: Browser, text: str = "take the bread out") -> ReminderRow:
    """A reminder that was told a moment ago and waits for an answer."""
    row = await house.reminders.add(who.user, f"{text} in 20 minutes")
    rows, now = house.runtime.db.repository(RemindersRepository, who.user.id), house.runtime.clock()
    at = now - timedelta(seconds=1)
    await rows.change(row.id, row.version, replace(row, expression=at.isoformat()), at)
    due = DueReminders(runtime=house.runtime, timings=house.reminders.timings, notifier=house.notices)
    assert await due.tell_one(Waking(id=row.id, owner_id=who.user.id, next_at=now))
    return await house.reminders.get(who.user, row.id)


async def test_a_visitor_is_led_to_the_login(visitor: httpx.AsyncClient) -> None:
    assert (await visitor.get("/reminders")).headers["location"].startswith("/login")


async def test_the_empty_page_says_what_to_write(ada: Browser) -> None:
    page = await ada.get("/reminders")
    assert "<!doctype html>" in page.text
    assert "every Friday" in page.text
    assert "<html" not in (await ada.fragment("/reminders")).text


async def test_words_are_read_before_anything_is_saved(house: Cortex, ada: Browser) -> None:
    asked = {"words": "water the plants every friday at 18:00"}
    part = await ada.http.post(
        "/reminders/reading", data=asked, headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    assert ("<b>water the plants</b>" in part.text, "every Friday" in part.text) == (True, True)
    assert part.text.count("·") == 2, "the next three times"
    assert "<form" not in part.text
    page = await ada.post("/reminders/reading", **asked)
    assert marks(page).values["words"] == asked["words"]
    assert "every Friday at 18:00" in page.text
    assert (await house.reminders.listing(ada.user)).repeating == []


async def test_a_time_alone_is_read_for_the_editor(ada: Browser) -> None:
    assert "every weekday" in (await ada.post("/reminders/reading", when="every weekday at 7:30")).text
    refused = await ada.post("/reminders/reading", when="whenever")
    assert "whenever" in refused.text
    assert refused.status_code == 200


async def test_what_is_added_is_told_as_it_was_read_and_can_be_undone(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/reminders", words="call <b>mum</b> tomorrow at 9", repeat_s="300")
    assert answer.headers["location"] == "/reminders#words"
    (row,) = (await house.reminders.listing(ada.user)).next
    assert (row.text, row.repeat_s) == ("call <b>mum</b>", 300)
    page = (await ada.get("/reminders")).text
    assert ("<b>mum" in page, "&lt;b&gt;mum&lt;/b&gt;" in page) == (False, True)
    assert "Will remind: call &lt;b&gt;mum&lt;/b&gt;, tomorrow 09:00" in page, "as people say it, not 2026-11-21"
    assert "keep: tomorrow 09:00." in (await ada.get(f"/reminders/{row.id}")).text
    undo = re.search(r'action="(/reminders/\w+/remove)"', page)
    assert undo
    await ada.post(undo.group(1))
    assert (await house.reminders.listing(ada.user)).next == []


@pytest.mark.parametrize(
    ("fields", "says"),
    [({"words": "call mum"}, "no time in the future"), ({"words": "call mum tomorrow", "repeat_s": "7"}, "intervals")],
    ids=["no time", "no such interval"],
)
async def test_what_is_refused_stays_as_typed(ada: Browser, fields: dict[str, str], says: str) -> None:
    answer = await ada.post("/reminders", **fields)
    assert answer.status_code == 422
    assert says in answer.text
    assert f'value="{fields["words"]}"' in answer.text


async def test_a_due_one_stands_on_top_and_is_heard(house: Cortex, ada: Browser) -> None:
    row = await due_now(house, ada)
    page = (await ada.get("/reminders")).text
    assert f'id="due-{row.id}"' in page
    await ada.post(f"/reminders/{row.id}/ack")
    page = (await ada.get("/reminders")).text
    assert f'id="due-{row.id}"' not in page
    assert f'id="past-{row.id}"' in page
    assert (await house.notices.unread(ada.user.id)) == 0


@pytest.mark.parametrize("answer", [("ack", ""), ("snooze", "1h")], ids=["done", "snoozed"])
async def test_an_answer_can_be_taken_back(house: Cortex, ada: Browser, answer: tuple[str, str]) -> None:
    row = await due_now(house, ada)
    verb, choice = answer
    await ada.post(f"/reminders/{row.id}/{verb}", choice=choice)
    page = (await ada.get("/reminders")).text
    assert f'action="/reminders/{row.id}/again"' in page
    assert f'id="due-{row.id}"' not in page
    await ada.post(f"/reminders/{row.id}/again")
    assert f'id="due-{row.id}"' in (await ada.get("/reminders")).text
    assert await house.notices.unread(ada.user.id) == 1
    back = await house.reminders.get(ada.user, row.id)
    assert (back.state, back.again_at) == ("due", None)
    assert (await ada.post(f"/reminders/{row.id}/again")).status_code == 409


async def test_looking_at_a_due_one_is_not_doing_it(house: Cortex, ada: Browser) -> None:
    row = await due_now(house, ada)
    (notice,) = (await house.notices.page(ada.user.id)).notices
    await ada.http.post("/notifications/seen", data={"path": "/reminders", "notice": notice.row.id})
    await ada.post(f"/notifications/{notice.row.id}/open")
    assert await house.notices.unread(ada.user.id) == 1
    await ada.post(f"/reminders/{row.id}/snooze", choice="1h")
    assert await house.notices.unread(ada.user.id) == 0


async def test_one_that_was_put_off_is_not_called_done_in_the_list_of_notices(house: Cortex, ada: Browser) -> None:
    row = await due_now(house, ada)
    (notice,) = (await house.notices.page(ada.user.id)).notices
    await house.notices.snooze(ada.user.id, notice.row.id, "1h")
    page = (await ada.get("/notifications")).text
    until = (await house.reminders.put_off(ada.user))[row.id]
    assert f'<time datetime="{until.isoformat()}"' in page
    assert "· done" not in page
    await house.reminders.acknowledge(ada.user.id, row.id)
    assert "snoozed until" not in (await ada.get("/notifications")).text


async def test_a_repeated_one_says_when_it_ends_and_that_it_did(house: Cortex, ada: Browser) -> None:
    page = (await ada.get("/reminders")).text
    assert ("every 5 min" in page, "max 2 h" in page) == (True, True)
    assert ("every 4 h" in page, "max 4 days" in page) == (True, True)
    row = await house.reminders.add(ada.user, "take the pill in 20 minutes", repeat_s=300)
    rows = house.runtime.db.repository(RemindersRepository, ada.user.id)
    assert row.next_at
    told = await rows.come_due(row.id, row.next_at, None)
    while told and told.again_at:
        told = await rows.come_again(row.id, told.again_at)
    assert "24 times, no" in (await ada.get("/reminders")).text
    assert "24 times, no" in (await ada.get(f"/reminders/{row.id}")).text


async def test_a_due_one_is_put_off_in_the_persons_own_words(house: Cortex, ada: Browser) -> None:
    row = await due_now(house, ada)
    refused = await ada.post(f"/reminders/{row.id}/snooze", choice="words", words="whenever")
    assert refused.status_code == 422
    assert 'id="f-words-e"' in refused.text
    await ada.post(f"/reminders/{row.id}/snooze", choice="words", words="in 3 hours")
    page = (await ada.get("/reminders")).text
    assert "Again in 3" in page
    assert "snoozed" in page
    assert (await house.reminders.get(ada.user, row.id)).state == "snoozed"


async def test_the_list_looks_again_when_the_bell_rings(ada: Browser) -> None:
    page = (await ada.get("/reminders?q=mum")).text
    assert 'hx-get="/reminders?q=mum" hx-trigger="unread from:body" hx-target="#reminder-lists"' in page


async def test_saving_keeps_what_was_typed_when_it_was_told_meanwhile(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "call mum tomorrow at 9")
    await house.reminders.change(ada.user, row.id, row.version, text="call dad", when="")
    late = await ada.post(f"/reminders/{row.id}", version=row.version, text="call mum and dad", when="")
    assert late.status_code == 409
    assert marks(late).values["text"] == "call mum and dad"
    assert "Current version:" in late.text
    saved = await ada.post(f"/reminders/{row.id}", version=row.version + 1, text="call mum", when="tomorrow at 10")
    assert saved.headers["location"] == "/reminders"
    assert (await house.reminders.get(ada.user, row.id)).words.endswith("at 10:00")


async def test_a_wrong_time_is_said_beside_its_field(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "call mum tomorrow at 9")
    refused = await ada.post(f"/reminders/{row.id}", version=row.version, text="call mum", when="whenever")
    assert refused.status_code == 422
    assert 'id="f-when-e"' in refused.text


async def test_removing_one_or_all_can_be_taken_back(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "call mum tomorrow at 9")
    await house.reminders.add(ada.user, "stretch every day at 12")
    await ada.post(f"/reminders/{row.id}/remove")
    assert f'action="/reminders/{row.id}/restore"' in (await ada.get("/reminders")).text
    await ada.post(f"/reminders/{row.id}/restore")
    assert "/reminders/clear" in marks(await ada.get("/reminders/clear")).forms
    await ada.post("/reminders/clear")
    page = (await ada.get("/reminders")).text
    assert "Removed: 2 reminders" in page
    await ada.post("/reminders/restore")
    listing = await house.reminders.listing(ada.user)
    assert [one.text for one in (*listing.next, *listing.repeating)] == ["call mum", "stretch"]


async def test_anothers_reminder_is_not_there(house: Cortex, ada: Browser, bob: Browser) -> None:
    row = await house.reminders.add(ada.user, "call mum tomorrow at 9")
    assert (await bob.get(f"/reminders/{row.id}")).status_code == 404
    for verb, fields in (("ack", {}), ("remove", {}), ("snooze", {"choice": "1h"}), ("restore", {}), ("again", {})):
        assert (await bob.post(f"/reminders/{row.id}/{verb}", **fields)).status_code == 404
    assert "call mum" not in (await bob.get("/reminders")).text
    assert await house.reminders.get(ada.user, row.id) == row


async def test_the_past_has_pages(house: Cortex, ada: Browser) -> None:
    rows, at = house.runtime.db.repository(RemindersRepository, ada.user.id), house.runtime.clock()
    base = await house.reminders.add(ada.user, "call mum tomorrow at 9")
    for number in range(60):
        made = await rows.add(f"old{number}", base, at)
        await rows.come_due(made.id, at, None)
        await rows.acknowledge(made.id)
    page = (await ada.get("/reminders")).text
    assert page.count('<tr id="past-') == 50
    assert 'href="/reminders?start=50#past-h"' in page
    assert (await ada.get("/reminders?start=50")).text.count('<tr id="past-') == 10


async def test_a_reminder_for_a_housemate_is_theirs_and_can_be_taken_back(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    assert "<option>Bob</option>" in (await ada.get("/reminders")).text
    sent = {"words": "call mum in 20 minutes", "person": "Bob"}
    page = await ada.post("/reminders", **sent)
    (row,) = (await house.reminders.listing(bob.user)).next
    assert (row.text, row.is_tainted) == ("call mum (from Ada)", True)
    assert "call mum (from Ada)" in (await bob.get("/reminders")).text
    assert not (await house.reminders.listing(ada.user)).next
    assert "Will remind Bob" in page.text or page.status_code == 303
    await bob.post("/reminders/given/remove")
    assert (await house.reminders.listing(bob.user)).next, "who gave nothing takes nothing back"
    await ada.post("/reminders/given/remove")
    assert not (await house.reminders.listing(bob.user)).next


async def test_what_a_housemate_changed_is_not_taken_back(house: Cortex, ada: Browser, bob: Browser) -> None:
    row = await house.reminders.add(ada.user, "call mum in 20 minutes", for_id=bob.user.id)
    await house.reminders.change(bob.user, row.id, row.version, text="call my mum", when="")
    await ada.post("/reminders/given/remove")
    assert [one.text for one in (await house.reminders.listing(bob.user)).next] == ["call my mum"]


async def test_nobody_is_reminded_who_has_no_account(house: Cortex, ada: Browser) -> None:
    page = await ada.post("/reminders", words="call mum in 20 minutes", person="nobody")
    assert page.status_code == 404
    assert not (await house.reminders.listing(ada.user)).next
