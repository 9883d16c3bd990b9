"""The page of integrations: cards, a form with a test, who may use it, on and off; without a script too."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.app import Cortex
from tests.databases import copy_home, house_settings
from tests.lamps import LampCortex
from tests.web.conftest import Browser, Seed
from tests.web.marks import marks

HREF = "/admin/integrations"
TYPED = {"address": "http://lamps.lan", "token": "lamp-token", "level": "70", "mode": "bright", "rooms": "hall attic"}


@pytest.fixture
async def house(tmp_path: Path, seed: Seed) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    async with LampCortex.at_rest(house_settings(tmp_path / "home", offline_delay_ms=0)) as cortex:
        yield cortex


async def test_each_system_has_a_card_with_its_form(ada: Browser) -> None:
    page = (await ada.get(HREF)).text
    assert 'id="lamps"' in page
    assert re.search(r'<input [^>]*name="token" type="password" required', page)
    assert "http://lamps.lan:8123" in page
    assert '<option value="bright">' in page


async def test_a_card_is_filled_tested_and_saved(ada: Browser) -> None:
    tried = await ada.post(f"{HREF}/lamps/test", **TYPED, is_new="1")
    assert marks(tried).said["ok"].startswith("4 lamps")
    assert "lamp-token" not in tried.text
    saved = await ada.post(f"{HREF}/lamps", **TYPED, is_new="1")
    assert (saved.status_code, saved.headers["location"]) == (303, f"{HREF}#lamps")
    page = (await ada.get(HREF)).text
    assert marks(page).fields["i-lamps--address"] == "http://lamps.lan"
    assert ("Stored." in page, marks(page).fields["i-lamps--token"]) == (True, "")
    assert "lamp-token" not in page
    again = await ada.post(f"{HREF}/lamps/test", **{**TYPED, "token": ""})
    assert "4 lamps answer" in again.text


async def test_a_stored_secret_is_removed_by_its_tick(ada: Browser) -> None:
    await ada.post(f"{HREF}/lamps", **TYPED, pin="1234", is_new="1")
    page = (await ada.get(HREF)).text
    assert 'for="i-lamps--pin-remove"' in page
    assert "remove_token" not in page
    await ada.post(f"{HREF}/lamps", **{**TYPED, "token": "", "remove_pin": "1"})
    page = (await ada.get(HREF)).text
    assert ("remove_pin" in page, "Stored." in page) == (False, True)


async def test_a_test_that_fails_says_why_and_what_was_typed_stays(ada: Browser) -> None:
    refused = await ada.post(f"{HREF}/lamps/test", **{**TYPED, "token": "wrong"}, is_new="1")
    assert refused.status_code == 422
    assert "token" in marks(refused).said["bad"]
    assert (await ada.get(f"{HREF}/lamps")).headers["location"] == f"{HREF}#lamps"  # where the browser is now
    assert marks(refused).fields["i-lamps--address"] == "http://lamps.lan"
    part = await ada.http.post(
        f"{HREF}/lamps/test",
        data={**TYPED, "token": "wrong", "is_new": "1"},
        headers={"HX-Request": "true", "HX-Request-Type": "partial"},
    )
    assert part.text.strip().startswith('<p class="say bad"')


async def test_a_slip_stands_beside_its_field(ada: Browser) -> None:
    refused = await ada.post(f"{HREF}/lamps", **{**TYPED, "level": "900"}, is_new="1")
    assert refused.status_code == 422
    assert "100" in marks(refused).slips["i-lamps--level"]


async def test_a_long_entry_is_kept_whole_and_a_far_too_long_one_refused(ada: Browser) -> None:
    rooms = [f"room-{number}" for number in range(1_000)]
    await ada.post(f"{HREF}/lamps", **{**TYPED, "rooms": " ".join(rooms)}, is_new="1")
    assert "room-999" in (await ada.get(HREF)).text
    refused = await ada.post(f"{HREF}/lamps", **{**TYPED, "rooms": "r" * 100_001})
    assert refused.status_code == 422
    assert "100,000 characters" in refused.text


async def test_it_is_given_to_some_switched_off_and_removed(ada: Browser) -> None:
    await ada.post(f"{HREF}/lamps", **TYPED, is_new="1")
    await ada.http.post(f"{HREF}/lamps/share", data={"roles": ["admin"], "people": [ada.user.id]})
    assert "admin; Ada" in " ".join((await ada.get(HREF)).text.split())
    await ada.post(f"{HREF}/lamps/switch")
    assert "Switched off." in (await ada.get(HREF)).text
    await ada.post(f"{HREF}/lamps/switch", is_on="1")
    assert "Remove Lamp server?" in (await ada.get(f"{HREF}/lamps/remove")).text
    await ada.post(f"{HREF}/lamps/remove")
    assert "Not configured." in (await ada.get(HREF)).text


async def test_a_role_that_is_gone_is_named_until_the_next_save(ada: Browser, house: Cortex) -> None:
    home = house.homes.home_of(ada.user.id)
    await home.write("roles/butler.md", "---\ntools: [all]\n---\nServe.\n")
    await ada.post(f"{HREF}/lamps", **TYPED, is_new="1")
    await ada.http.post(f"{HREF}/lamps/share", data={"roles": ["admin", "butler"]})
    await home.remove("roles/butler.md")
    page = " ".join((await ada.get(HREF)).text.split())
    assert "butler (deleted); everybody" in page
    assert "butler (deleted; saving" in page
    refused = await ada.http.post(f"{HREF}/lamps/share", data={"roles": ["butler"]})
    assert refused.status_code == 422
    assert "none for all" in refused.text
    await ada.http.post(f"{HREF}/lamps/share", data={"roles": ["admin", "butler"]})
    assert "butler" not in (await ada.get(HREF)).text


async def test_one_that_is_given_to_people_offers_no_roles(ada: Browser) -> None:
    await ada.post(f"{HREF}/personal", **TYPED, is_new="1")
    section = (await ada.get(HREF)).text.split('id="personal"')[1].split("</section>")[0]
    assert "use it: everybody" in " ".join(section.split())
    assert 'name="people"' in section
    assert 'name="roles"' not in section


async def test_a_member_sees_none_of_it(bob: Browser) -> None:
    assert (await bob.get(HREF)).status_code == 403
    assert (await bob.post(f"{HREF}/lamps", **TYPED)).status_code == 403


async def test_only_what_announces_itself_is_searched_for(ada: Browser) -> None:
    assert "Search network" not in (await ada.get(HREF)).text
    refused = await ada.post(f"{HREF}/lamps/search", **TYPED, is_new="1")
    assert refused.status_code == 422
    assert "searching" in marks(refused).said["bad"]
    assert marks(refused).fields["i-lamps--address"] == "http://lamps.lan"


async def test_rows_stand_by_whether_they_are_connected_and_say_how_they_do(ada: Browser, house: Cortex) -> None:
    def groups(page: str) -> tuple[str, str]:
        connected, _, ready = page.partition("Ready to connect</h2>")
        return connected, ready

    row = '<details class="sys" name="systems">'  # of one name: one opens at a time
    connected, ready = groups((await ada.get(HREF)).text)
    assert ('id="lamps"' in connected, 'id="lamps"' in ready) == (False, True)
    assert row in ready
    await ada.post(f"{HREF}/lamps", **TYPED, is_new="1")
    connected, ready = groups((await ada.get(HREF)).text)
    assert ('id="lamps"' in connected, 'id="lamps"' in ready) == (True, False)
    assert row in connected
    assert "Not used yet" in connected
    await ada.post(f"{HREF}/lamps/test", **{**TYPED, "token": ""})
    assert (await house.integrations.card("lamps", "")).row is not None
    state = re.search(r'id="state-lamps">(.*?)</span>', (await ada.get(HREF)).text, re.S)
    assert state
    assert ">Works</b>" in state[1]
    await ada.post(f"{HREF}/lamps/switch")
    assert re.search(r'id="state-lamps">\s*<b>Off</b>', (await ada.get(HREF)).text)
    refused = await ada.post(f"{HREF}/lamps", **{**TYPED, "level": "900"})
    assert refused.text.count('name="systems" open') == 1, "the one that was refused is open"
