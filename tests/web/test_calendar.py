"""The page Calendar over a real server: weeks, changes and their undo, accounts, the address of one's own."""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from cortex.services.jobs.forms import JobForm
from cortex.storage.calendars import CalendarsRepository
from tests.databases import copy_home, house_settings
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.web.conftest import Browser, Seed, logged_in
from web.app import create_app
from web.week import DAY_MOST, View, first_day_of, moved, shown_days

DAY = (datetime.now(UTC) + timedelta(days=7)).date()  # of next week, wherever today stands in this one
TIMES = [f"DTSTART:{DAY:%Y%m%d}T090000Z", f"DTEND:{DAY:%Y%m%d}T100000Z"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(tmp_path: Path, seed: Seed, server: DavServer) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    settings = house_settings(tmp_path / "home", offline_delay_ms=0, calendar_servers=server.place)
    async with Cortex.at_rest(settings) as cortex:
        yield cortex


async def connect(house: Cortex, who: Browser, server: DavServer, person: str = "ann") -> str:
    """The person's account, connected by the page, its copy made; its id."""
    fields = {"address": server.base, "username": person, "password": PASSWORD}
    answer = await who.post("/calendar/accounts/server", **fields)
    assert answer.status_code == 303, answer.text
    ((row, _),) = await house.calendar_accounts.list(who.user)
    await house.calendar_sync.sync(who.user.id, row.id)
    return row.id


async def place_of(who: Browser, title: str, day: date = DAY) -> str:
    """The address of an appointment, as the day's page links to it."""
    page = (await who.get(f"/calendar?view=day&day={day}")).text
    found = re.search(rf'href="(/calendar/appointments/[^"]+)">[^<]*<b dir="auto">{re.escape(title)}<', page)
    assert found, page
    return found[1].replace("&amp;", "&")


def fields_of(page: httpx.Response) -> dict[str, str]:
    """What the form of an appointment would send as it stands."""
    form = page.text.split('class="form"')[1].split("</form>")[0]
    found = dict(re.findall(r'<input[^>]*? name="(\w+)"[^>]*? value="([^"]*)"', form))
    found.pop("is_all_day", None)
    return {name: value.replace("&#43;", "+") for name, value in found.items()}


async def test_an_empty_week_says_what_can_be_done(ada: Browser) -> None:
    page = await ada.get("/calendar")
    assert "Nothing this week." in page.text
    assert 'href="/calendar/accounts">Connect a calendar' in page.text
    assert "<html" not in (await ada.fragment("/calendar")).text
    assert "may write to none" in (await ada.get("/calendar/new")).text


async def test_a_week_shows_appointments_reminders_and_jobs(house: Cortex, ada: Browser, server: DavServer) -> None:
    url = server.make("weekly")
    server.put(url, "dentist", *event("w-1", "Dentist", *TIMES, "LOCATION:Main Street 1"))
    server.put(url, "visit", *event("w-2", "Oma visits", f"DTSTART;VALUE=DATE:{DAY:%Y%m%d}"))
    await connect(house, ada, server)
    await house.reminders.add(ada.user, f"Blue bin on {DAY:%d %B %Y} at 20:00")
    await house.jobs.add(ada.user, JobForm(name="Read the list", prompt="Read.", when="every day at 7:30"))
    page = (await ada.get(f"/calendar?day={DAY}")).text
    desk = page.split('<div class="cal">')[1].split('<div class="agd">')[0]
    assert re.search(r'class="ev c0 a8 z12"[^>]*title="Dentist, 09:00 to 10:00, Ada, Main Street 1, weekly"', desk)
    assert 'title="Oma visits, all day, Ada, weekly"' in desk
    assert re.search(r'class="ev dash a52 z55"[^>]*title="Blue bin, reminder at 20:00"', desk)
    assert desk.count("Read the list, job at 07:30") == 7
    agenda = page.split('<div class="agd">')[1]
    assert agenda.index("Oma visits") < agenda.index("Dentist") < agenda.index("Blue bin")
    month = (await ada.get(f"/calendar?view=month&day={DAY}")).text
    assert "Dentist" in month
    assert "Oma visits" in month


async def test_of_a_full_day_appointments_are_shown_first_and_the_rest_is_counted(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    day = DAY + timedelta(days=22)  # no other test has anything on it
    url = server.make("full")
    server.put(url, "last", *event("f-1", "Dentist", f"DTSTART:{day:%Y%m%d}T200000Z"))
    await connect(house, ada, server)
    for minute in range(DAY_MOST["week"] + 1):
        await house.reminders.add(ada.user, f"pill {minute} on {day} at 8:{minute:02}")
    week = (await ada.get(f"/calendar?day={day}")).text
    assert f'href="/calendar?view=day&day={day}">+2 more</a>' in week
    assert ("Dentist" in week, "pill 0" in week, "pill 11" in week) == (True, True, False)
    alone = (await ada.get(f"/calendar?view=day&day={day}")).text
    assert ("pill 12" in alone, " more</a>" in alone) == (True, False)


async def test_a_sentence_adds_and_undo_takes_it_out(house: Cortex, ada: Browser, server: DavServer) -> None:
    url = server.make("sentence")
    await connect(house, ada, server)
    words = f"Piano with Mia on {DAY:%d %B %Y} at 15:00"
    once = {"words": words, "once": "one-form"}
    for _ in range(2):  # a press too many
        answer = await ada.post("/calendar", **once)
        assert answer.status_code == 303, answer.text
    found = [one for one in await house.agenda.appointments(ada.user, *around(DAY)) if one.title == "Piano with Mia"]
    assert [(one.starts_at.hour, one.ends_at.hour) for one in found] == [(15, 16)]
    answer = await ada.post("/calendar", words=words.replace("Piano", "Flute"), once="another")
    page = await ada.get(answer.headers["location"])
    undo = re.search(r'action="(/calendar/undo/[\w-]+)"', page.text)
    assert undo
    assert (await ada.post(undo[1])).status_code == 303
    titles = [one.title for one in await house.agenda.appointments(ada.user, *around(DAY))]
    assert "Flute with Mia" not in titles
    assert "Piano with Mia" in titles
    assert "no longer be undone" in (await ada.post(undo[1])).text
    assert url


async def test_a_day_without_a_time_is_a_whole_day_also_today(house: Cortex, ada: Browser, server: DavServer) -> None:
    server.make("days")
    await connect(house, ada, server)
    today = datetime.now(UTC).date()
    for words, day in ((f"Holiday on {DAY:%d %B %Y}", DAY), ("Day off today", today)):
        answer = await ada.post("/calendar", words=words, once=words)
        assert answer.status_code == 303, answer.text
        assert "all day" in (await ada.get(answer.headers["location"])).text
        title = words.partition(" on ")[0].removesuffix(" today")
        found = [one for one in await house.agenda.appointments(ada.user, *around(day)) if one.title == title]
        assert [(one.day, one.last_day) for one in found] == [(day.isoformat(), day.isoformat())]
    answer = await ada.post("/calendar", words="Day off every Monday", once="weekly")
    form = await ada.get(answer.headers["location"])
    assert re.search(r'name="is_all_day"[^>]*checked', form.text.replace("\n", " "))


async def test_new_appointments_go_where_they_were_told_to(house: Cortex, ada: Browser, server: DavServer) -> None:
    server.make("usual-a")
    server.make("usual-b")
    await connect(house, ada, server)
    calendars = {one.name: one for one in (await house.calendar_accounts.list(ada.user))[0][1]}
    page = (await ada.get("/calendar/accounts")).text
    assert "New appointments go into" in page
    last = calendars["usual-b"]
    assert (await ada.post("/calendar/accounts/usual", usual=last.id)).status_code == 303
    page = (await ada.get("/calendar/accounts")).text
    assert f'value="{last.id}" selected' in page
    await ada.post("/calendar", words=f"Vet in it on {DAY:%d %B %Y} at 15:00", once="usual")
    found = [one for one in await house.agenda.appointments(ada.user, *around(DAY)) if one.title == "Vet in it"]
    assert [one.calendar.name for one in found] == ["usual-b"]
    assert f'value="{last.id}"' in (await ada.get("/calendar/new")).text
    assert (await ada.post("/calendar/accounts/usual", usual="nobody")).status_code == 404
    await ada.post(f"/calendar/calendars/{last.id}", access="read")
    assert (await ada.post("/calendar/accounts/usual", usual=last.id)).status_code == 422


async def test_the_page_says_whether_guests_are_told(house: Cortex, ada: Browser, server: DavServer) -> None:
    url, account = server.make("guests"), await connect(house, ada, server)
    invited = ["ORGANIZER:mailto:ada@example.org", "ATTENDEE:mailto:ben@example.org"]
    server.put(url, "guests", *event("g-1", "Guests", *TIMES, *invited))
    await house.calendar_sync.sync(ada.user.id, account)
    rows = house.runtime.db.repository(CalendarsRepository, ada.user.id)
    for sends, words, asked in (
        (False, "Your calendar server sends them nothing", "your calendar server tells them nothing"),
        (True, "your calendar server tells them what you change", "your calendar server tells them."),
    ):
        await rows.set_account(account, schedules=sends, addresses="ada@example.org")
        place = await place_of(ada, "Guests")
        assert words in (await ada.get(place)).text
        assert asked in (await ada.get(place.replace("?", "/remove?"))).text


async def test_a_sentence_that_cannot_be_read_stays_in_its_box(house: Cortex, ada: Browser, server: DavServer) -> None:
    server.make("words")
    await connect(house, ada, server)
    page = await ada.post("/calendar", words="dentist some day", once="x")
    assert page.status_code == 422
    assert 'value="dentist some day"' in page.text
    answer = await ada.post("/calendar", words="Choir every Monday at 19:00", once="y")
    form = await ada.get(answer.headers["location"])
    assert "You wrote that it repeats (every Monday at 19:00)" in form.text
    assert 'value="Choir"' in form.text


async def test_an_appointment_is_changed_removed_and_taken_back(house: Cortex, ada: Browser, server: DavServer) -> None:
    url = server.make("changes")
    stands = server.put(url, "dentist", *event("c-1", "Dentist\\, changes", *TIMES))
    await connect(house, ada, server)
    place = await place_of(ada, "Dentist, changes")
    fields = fields_of(await ada.get(place)) | {"title": "Dentist, moved", "starts": "11:00", "ends": "11:30"}
    answer = await ada.post(place.partition("?")[0], **fields)
    assert answer.status_code == 303, answer.text
    assert f"DTSTART:{DAY:%Y%m%d}T110000Z" in server.get(stands)
    page = await ada.get(answer.headers["location"])
    undo = re.search(r'action="(/calendar/undo/[\w-]+)"', page.text)
    assert undo
    await ada.post(undo[1])
    assert "SUMMARY:Dentist\\, changes" in server.get(stands)
    place = await place_of(ada, "Dentist, changes")
    assert "Remove Dentist, changes?" in (await ada.get(place.replace("?", "/remove?"))).text
    answer = await ada.post(place.replace("?", "/remove?"))
    assert not server.get(stands)
    undo = re.search(r'action="(/calendar/undo/[\w-]+)"', (await ada.get(answer.headers["location"])).text)
    assert undo
    await ada.post(undo[1])
    assert "SUMMARY:Dentist\\, changes" in server.get(stands)


async def test_one_that_was_changed_meanwhile_is_shown_beside_what_was_typed(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    url = server.make("meanwhile")
    stands = server.put(url, "dentist", *event("m-1", "Meanwhile", *TIMES))
    account = await connect(house, ada, server)
    place = await place_of(ada, "Meanwhile")
    fields = fields_of(await ada.get(place)) | {"title": "Mine"}
    server.put(url, "dentist", *event("m-1", "Theirs", *TIMES))
    await house.calendar_sync.sync(ada.user.id, account)
    page = await ada.post(place.partition("?")[0], **fields)
    assert page.status_code == 409
    assert "Theirs</h1>" in page.text
    assert 'value="Mine"' in page.text
    assert "SUMMARY:Theirs" in server.get(stands)


async def test_a_series_is_changed_by_its_date_or_as_a_whole(house: Cortex, ada: Browser, server: DavServer) -> None:
    url = server.make("series")
    server.put(url, "run", *event("s-1", "Run", *TIMES, "RRULE:FREQ=DAILY;COUNT=3"))
    await connect(house, ada, server)
    second = DAY + timedelta(days=1)
    place = await place_of(ada, "Run", second)
    page = await ada.get(place)
    assert "This is one date of a series." in page.text
    moved_one = fields_of(page) | {"starts": "12:00", "ends": "13:00", "dates": "one"}
    assert (await ada.post(place.partition("?")[0], **moved_one)).status_code == 303
    hours = [one.starts_at.hour for one in await runs(house, ada)]
    assert hours == [9, 12, 9]
    place = await place_of(ada, "Run", DAY)
    whole = fields_of(await ada.get(place)) | {"title": "Long run", "dates": "all"}
    assert (await ada.post(place.partition("?")[0], **whole)).status_code == 303
    assert len([one for one in await runs(house, ada) if one.title == "Long run"]) >= 2


async def test_a_new_title_leaves_a_series_in_its_own_zone(house: Cortex, ada: Browser, server: DavServer) -> None:
    url, zone = server.make("zones"), "TZID=America/New_York"
    call = event("z-1", "Call", f"DTSTART;{zone}:{DAY:%Y%m%d}T090000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=30")
    stands = server.put(url, "call", *call)
    await connect(house, ada, server)
    place = await place_of(ada, "Call")
    whole = fields_of(await ada.get(place)) | {"title": "Call, weekly", "dates": "all"}
    assert (await ada.post(place.partition("?")[0], **whole)).status_code == 303
    assert f"DTSTART;{zone}:{DAY:%Y%m%d}T090000" in server.get(stands)
    place = await place_of(ada, "Call, weekly")
    later = fields_of(await ada.get(place)) | {"starts": "16:00", "ends": "17:00", "dates": "all"}
    assert (await ada.post(place.partition("?")[0], **later)).status_code == 303
    assert re.search(rf"DTSTART;{zone}:{DAY:%Y%m%d}T1[12]0000", server.get(stands)), "moved, in its own zone"


async def runs(house: Cortex, who: Browser) -> list:  # type: ignore[type-arg]
    found = await house.agenda.appointments(who.user, around(DAY)[0], around(DAY)[1] + timedelta(days=5))
    return [one for one in found if "un" in one.title and one.calendar.name == "series"]


async def test_what_is_wrong_in_the_form_is_said_beside_its_field(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    server.make("wrong")
    await connect(house, ada, server)
    good = {"once": "a", "title": "Tea", "day": str(DAY), "starts": "10:00", "last_day": str(DAY), "ends": "11:00"}
    for change, words in (
        ({"title": " "}, "Give it a title"),
        ({"day": "soon"}, "Choose a day"),
        ({"starts": "25:00"}, "Choose a time"),
        ({"ends": "09:00"}, "cannot end before"),
        ({"repeat": "hourly"}, "Choose how it repeats"),
        ({"calendar": "nobody"}, "Choose one of your calendars"),
    ):
        page = await ada.post("/calendar/new", **{**good, **change})
        assert page.status_code == 422
        assert words in page.text
        assert "Tea" in page.text or change.get("title")
    assert (await ada.post("/calendar/new", **good)).status_code == 303


async def test_others_see_what_is_shared_and_can_change_nothing(
    house: Cortex, ada: Browser, bob: Browser, server: DavServer
) -> None:
    url = server.make("household")
    server.put(url, "dentist", *event("h-1", "Dentist for all", *TIMES))
    account = await connect(house, ada, server)
    place = await place_of(ada, "Dentist for all")
    own = next(one for one in (await house.calendar_accounts.list(ada.user))[0][1] if one.name == "household")
    assert "Dentist for all" not in (await bob.get(f"/calendar?day={DAY}")).text
    assert (await bob.get(place)).status_code == 404
    await ada.post(f"/calendar/calendars/{own.id}", access="write", shared_as="busy")
    page = (await bob.get(f"/calendar?day={DAY}")).text
    assert "Busy" in page
    assert "Dentist for all" not in page
    await ada.post(f"/calendar/calendars/{own.id}", access="write", shared_as="read")
    page = (await bob.get(f"/calendar?day={DAY}")).text
    assert 'title="Dentist for all, 09:00 to 10:00, Ada, household"' in page
    shown = await bob.get(place)
    assert "Only Ada can change it." in shown.text
    answer = await bob.post(place.partition("?")[0], **fields_of(await ada.get(place)) | {"title": "Mine"})
    assert answer.status_code in (404, 409, 422)
    assert (await bob.post(place.replace("?", "/remove?"))).status_code in (404, 422)
    assert (await bob.post(f"/calendar/calendars/{own.id}", access="off")).status_code == 404
    assert (await bob.post(f"/calendar/accounts/{account}/sync")).status_code == 404
    assert (await bob.post(f"/calendar/accounts/{account}/remove")).status_code == 404
    assert (await bob.get(f"/calendar/accounts/{account}/remove")).status_code == 404


async def test_a_silent_server_is_told_with_the_time_of_the_copy(tmp_path: Path, seed: Seed) -> None:
    copy_home(seed.home, tmp_path / "other")
    with radicale(tmp_path / "silent") as away:
        settings = house_settings(tmp_path / "other", offline_delay_ms=0, calendar_servers=away.place)
        async with Cortex.at_rest(settings) as house:
            ada = await logged_in(create_app(house), house, "Ada", seed.tokens["Ada"])
            away.put(away.make("silent"), "dentist", *event("q-1", "Still here", *TIMES))
            account = await connect(house, ada, away)
    async with Cortex.at_rest(settings) as house:
        ada = await logged_in(create_app(house), house, "Ada", seed.tokens["Ada"])
        await house.calendar_sync.sync(ada.user.id, account)
        page = (await ada.get(f"/calendar?day={DAY}")).text
        assert "Still here" in page
        assert re.search(r"127\.0\.0\.1:\s+as of\s+\d\d:\d\d", page)
        accounts = (await ada.get("/calendar/accounts")).text
        assert "As of" in accounts
        await ada.http.aclose()


async def test_accounts_are_connected_asked_and_removed_in_words(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    server.make("accounts")
    wrong = await ada.post("/calendar/accounts/server", address=server.base, username="ann", password="no")
    assert wrong.status_code == 422
    assert "name and password" in wrong.text
    assert 'value="no"' not in wrong.text
    none = await ada.post("/calendar/accounts/server", address="ftp://example.org", username="ann", password="x")
    assert "This is no address of a calendar server" in none.text
    account = await connect(house, ada, server)
    assert (await ada.post(f"/calendar/accounts/{account}/sync")).status_code == 303
    assert "Nothing is deleted on the server" in (await ada.get(f"/calendar/accounts/{account}/remove")).text
    await ada.post(f"/calendar/accounts/{account}/remove")
    assert not await house.calendar_accounts.list(ada.user)


async def test_today_shows_the_appointments_of_the_day_and_the_next_ones(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    url, today, next_day = server.make("todays"), datetime.now(UTC).date(), datetime.now(UTC) + timedelta(days=1)
    server.put(url, "all", *event("t-1", "Market day", f"DTSTART;VALUE=DATE:{today:%Y%m%d}"))
    server.put(url, "next", *event("t-2", "Early flight", f"DTSTART:{next_day:%Y%m%d}T040000Z", "DURATION:PT1H"))
    await connect(house, ada, server)
    page = (await ada.get("/today")).text.split('id="today"')[1]
    assert "Market day" in page.split("Due today")[1].split("</section>")[0]
    assert "Early flight" in page.split('id="next-h"')[1].split("</section>")[0]


async def test_the_address_of_ones_own_is_read_by_whoever_knows_it_and_renewed(
    house: Cortex, ada: Browser, visitor: httpx.AsyncClient
) -> None:
    await house.reminders.add(ada.user, "Blue bin; green bin, tomorrow at 20:00")
    await house.tasks.create(ada.user, "Sign the form", due=datetime.now(UTC).date())
    await house.jobs.add(ada.user, JobForm(name="Read " + "ü" * 60, prompt="Read.", when="every day at 7:30"))
    await ada.post("/calendar/feed")
    path = await own_address(ada)
    answer = await visitor.get(path)
    assert answer.headers["content-type"].startswith("text/calendar")
    assert answer.headers["cache-control"] == "private, no-store"
    assert "SUMMARY:Reminder: Blue bin\\; green bin" in answer.text
    assert "SUMMARY:To do: Sign the form" in answer.text
    assert answer.text.count("BEGIN:VEVENT") >= 60
    assert all(len(line.encode()) <= 75 for line in answer.text.split("\r\n"))
    assert (await visitor.get(path[:-8] + "AAAA.ics")).status_code == 404
    await ada.post("/calendar/feed")
    assert (await visitor.get(path)).status_code == 404
    path = await own_address(ada)
    assert (await visitor.get(path)).status_code == 200
    await ada.post("/calendar/feed/remove")
    assert (await visitor.get(path)).status_code == 404


async def test_whoever_guesses_addresses_is_stopped(ada: Browser, visitor: httpx.AsyncClient) -> None:
    await ada.post("/calendar/feed")
    for _ in range(30):
        assert (await visitor.get(f"/calendar/feed/{ada.user.id}/wrong.ics")).status_code == 404
    assert (await visitor.get(f"/calendar/feed/{ada.user.id}/wrong.ics")).status_code == 429


async def own_address(who: Browser) -> str:
    page = (await who.get("/calendar/accounts")).text
    found = re.search(r"http://[^/]+(/calendar/feed/[^<\s]+\.ics)", page)
    assert found
    return found[1]


def test_a_week_begins_as_chosen_or_as_the_browsers_place_has_it() -> None:
    assert first_day_of(None, "de-DE,de;q=0.9") == "monday"
    assert first_day_of(None, "en-US,en;q=0.5") == "sunday"
    assert first_day_of(None, "ar-EG") == "saturday"
    assert first_day_of("monday", "en-US") == "monday"
    assert begins_of("week", date(2026, 11, 28), "sunday") == (date(2026, 11, 22), 7)
    assert begins_of("month", date(2026, 11, 28), "monday") == (date(2026, 10, 26), 42)
    assert begins_of("month", date(2027, 2, 10), "monday") == (date(2027, 2, 1), 28)
    assert moved("month", date(2026, 12, 31), 1) == date(2027, 1, 1)


def begins_of(view: View, day: date, first_day: str) -> tuple[date, int]:
    days = shown_days(view, day, first_day)
    return days.begins, days.count


async def test_the_first_day_is_chosen_in_the_look(ada: Browser) -> None:
    await ada.post("/account/look", first_day="sunday", keys="1")
    page = (await ada.get("/calendar?day=2026-11-28")).text
    assert "22 to 28 November" in page
    assert (await ada.post("/account/look", first_day="friday")).status_code == 422


def around(day: date) -> tuple[datetime, datetime]:
    begins = datetime.combine(day, datetime.min.time(), UTC)
    return begins, begins + timedelta(days=1)
