"""Settings of the server as admins set them: in force, on trial, taken back, unset; across starts."""

import asyncio
import logging
import socket
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.errors import NotAllowed, UserError
from cortex.base.server_settings import EXTRAS
from cortex.services.upkeep import server_settings
from cortex.services.upkeep.server_settings import ServerSettings
from cortex.storage.audit import AuditRepository
from cortex.storage.secrets import AllSecretsRepository
from cortex.storage.server_settings import ServerSettingRow
from tests.databases import everything, house_settings
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.ports import port_for
from tests.still_clock import StillClock

ADDRESS = "https://cortex.example.org"


async def row(house: LivingHouse, name: str) -> ServerSettingRow:
    return (await house.cortex.server_settings.rows())[name]


async def actions(house: LivingHouse) -> list[str]:
    rows = await house.cortex.runtime.db.repository(AuditRepository).list(50)
    return [one.action for one in rows if one.action.startswith("setting.")]


async def test_what_is_set_holds_at_once_and_after_a_start(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        changed = await house.cortex.server_settings.set(house.admin, {"max_rounds": 7, "memory_learns": False})
        assert sorted(changed) == ["max_rounds", "memory_learns"]
        assert house.cortex.settings.max_rounds == 7
        assert (await row(house, "max_rounds")).by == house.admin.name
        assert await actions(house) == ["setting.set", "setting.set"]
    async with living_house(tmp_path / "home") as house:
        assert (house.cortex.settings.max_rounds, house.cortex.settings.memory_learns) == (7, False)
        assert await house.cortex.server_settings.set(house.admin, {"max_rounds": "7"}) == []


async def test_what_was_given_outside_wins_and_cannot_be_set(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        await house.cortex.server_settings.set(house.admin, {"max_rounds": 7})
    async with living_house(tmp_path / "home", max_rounds=3) as house:
        assert house.cortex.settings.max_rounds == 3
        with pytest.raises(UserError, match="CORTEX_MAX_ROUNDS is set outside"):
            await house.cortex.server_settings.set(house.admin, {"max_rounds": 8})


@pytest.mark.parametrize(
    ("values", "field", "words"),
    [
        ({"max_rounds": 900}, "max_rounds", "Rounds per message: must be at most 25"),
        ({"smtp_host": "mail.example.org"}, "smtp_from", "Sender address: is needed"),
        ({"public_url": "https://example.org/cortex"}, "public_url", "must have no path"),
        ({"public_url": "https://example.org#x"}, "public_url", "must have no path"),
        ({"public_url": "https://example.org?x"}, "public_url", "must have no path"),
        ({"trusted_proxies": "10.0.0.2"}, "password", "password again"),
        ({"host": "0.0.0.0"}, "host", "others can reach"),  # noqa: S104 - refused
        ({"secret_key": "x" * 40}, "name", "can only be set in the environment"),
        ({"colour": "blue"}, "name", "is not a setting"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_wrong_one_is_refused_by_its_field_and_nothing_is_set(
    house: LivingHouse, values: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(UserError, match=words) as refused:
        await house.cortex.server_settings.set(house.admin, {"upload_mb": 9, **values})
    assert refused.value.field == field
    assert await house.cortex.server_settings.rows() == {}
    assert house.cortex.settings.upload_mb == 20


async def test_a_port_that_another_program_has_is_refused(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        house.cortex.settings.model_fields_set.discard("port")
        with (
            socket.create_server(("127.0.0.1", 0)) as other,
            pytest.raises(UserError, match="Cannot listen on") as refused,
        ):
            await house.cortex.server_settings.set(house.admin, {"port": other.getsockname()[1]})
    assert refused.value.field == "port"


@pytest.mark.parametrize("host", ["203.0.113.9", "\u00e9" * 80], ids=["another machine", "no name at all"])
async def test_an_address_that_this_machine_has_not_is_refused(house: LivingHouse, host: str) -> None:
    with pytest.raises(UserError) as refused:
        await house.cortex.server_settings.set(house.admin, {"host": host, "allow_plain_http": "lan"})
    assert refused.value.field == "host"
    assert await house.cortex.server_settings.rows() == {}


async def test_of_two_processes_that_end_a_trial_one_does(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        mine = house.cortex.server_settings
        await mine.set(house.admin, {"public_url": ADDRESS})
        clock.forward(minutes=3)
        others = [ServerSettings(settings=mine.settings, db=mine.db, vault=mine.vault, clock=clock) for _ in range(3)]
        await asyncio.gather(*(other.begin(is_daemon=True) for other in others))
        assert (await actions(house)).count("setting.taken_back") == 1
        assert (await row(house, "public_url")).before == ADDRESS


async def test_a_member_can_do_nothing(house: LivingHouse) -> None:
    settings = house.cortex.server_settings
    await settings.set(house.admin, {"public_url": ADDRESS})
    for tried in (
        settings.set(house.member, {"upload_mb": 9}),
        settings.unset(house.member, "public_url"),
        settings.undo(house.member, "public_url"),
        settings.keep(house.member),
        settings.take_back(house.member),
    ):
        with pytest.raises(NotAllowed):
            await tried
    assert (await row(house, "public_url")).is_on_trial


async def test_an_address_goes_back_unless_it_is_confirmed(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        settings = house.cortex.server_settings
        await settings.set(house.admin, {"public_url": ADDRESS, "upload_mb": 9})
        assert house.cortex.settings.public_url == ADDRESS
        clock.forward(seconds=119)
        await settings.look()
        assert house.cortex.settings.public_url == ADDRESS
        clock.forward(seconds=2)
        await settings.look()
        assert (house.cortex.settings.public_url, house.cortex.settings.upload_mb) == ("", 9)


async def test_the_daemon_itself_takes_back_what_is_not_confirmed(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        await house.cortex.server_settings.set(house.admin, {"public_url": ADDRESS})
        clock.forward(minutes=3)
        changed = asyncio.Event()
        house.cortex.server_settings.listeners.append(changed.set)
        house.cortex.server_settings.stir()
        async with asyncio.timeout(PATIENCE_S):
            await changed.wait()
        assert house.cortex.settings.public_url == ""
        assert await actions(house) == ["setting.taken_back", "setting.set"]


async def test_what_is_confirmed_stays(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        await house.cortex.server_settings.set(house.admin, {"public_url": ADDRESS})
        await house.cortex.server_settings.keep(house.admin)
        clock.forward(minutes=3)
        await house.cortex.server_settings.look()
        assert house.cortex.settings.public_url == ADDRESS
        assert await actions(house) == ["setting.kept", "setting.set"]


async def test_what_was_seen_to_work_is_not_on_trial(house: LivingHouse) -> None:
    await house.cortex.server_settings.set(house.admin, {"public_url": ADDRESS}, is_proven=True)
    assert not (await row(house, "public_url")).is_on_trial


async def test_a_trial_is_over_by_its_time_after_a_kill_too(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock) as house:
        await house.cortex.server_settings.set(house.admin, {"public_url": ADDRESS})
    clock.forward(seconds=30)
    async with living_house(tmp_path / "home", clock=clock) as house:
        assert house.cortex.settings.public_url == ADDRESS
    clock.forward(minutes=10)
    async with living_house(tmp_path / "home", clock=clock) as house:
        assert house.cortex.settings.public_url == ""
        found = await row(house, "public_url")
        assert (found.value, found.before, found.is_on_trial) == (None, ADDRESS, False)
        assert "not confirmed" in found.note
        assert await actions(house) == ["setting.taken_back", "setting.set"]


async def test_a_trial_is_over_though_the_clock_was_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StillClock()
    monkeypatch.setattr(server_settings, "TRIAL", timedelta(milliseconds=200))
    async with living_house(tmp_path / "home", clock=clock) as house:
        service = house.cortex.server_settings
        await service.set(house.admin, {"public_url": ADDRESS})
        changed = asyncio.Event()
        service.listeners.append(changed.set)
        watching = asyncio.create_task(service.watch())
        await asyncio.sleep(0)
        clock.forward(minutes=-60)
        async with asyncio.timeout(PATIENCE_S):
            await changed.wait()
        watching.cancel()
        assert house.cortex.settings.public_url == ""
        assert await actions(house) == ["setting.taken_back", "setting.set"]


async def test_a_trial_that_needs_a_restart_begins_with_it(tmp_path: Path) -> None:
    clock = StillClock()
    port = port_for(clock)
    async with living_house(tmp_path / "home", clock=clock):
        pass
    async with _without_port(tmp_path, clock) as cortex:
        admin = (await cortex.accounts.users())[0]
        await cortex.server_settings.set(admin, {"port": port, "public_url": ADDRESS})
        assert (cortex.settings.port, cortex.settings.public_url) == (8484, "")
        clock.forward(minutes=5)
    async with _without_port(tmp_path, clock) as cortex:
        assert (cortex.settings.port, cortex.settings.public_url) == (port, ADDRESS)
        clock.forward(seconds=90)
    async with _without_port(tmp_path, clock) as cortex:
        assert cortex.settings.port == port
        clock.forward(seconds=31)
    async with _without_port(tmp_path, clock) as cortex:
        assert (cortex.settings.port, cortex.settings.public_url) == (8484, "")


def _without_port(tmp_path: Path, clock: StillClock) -> AbstractAsyncContextManager[Cortex]:
    settings = house_settings(tmp_path / "home", offline_delay_ms=0, shutdown_grace_s=1.0)
    return Cortex.open(settings, clock=clock)


async def test_a_secret_is_sealed_never_logged_and_can_be_undone(house: LivingHouse) -> None:
    settings = house.cortex.server_settings
    await settings.set(house.admin, {"metrics_token": "first-secret-key"})
    await settings.set(house.admin, {"metrics_token": "second-secret-key"})
    assert house.cortex.settings.metrics_token == "second-secret-key"
    stored = await everything(house.cortex.runtime.db)
    assert "secret-key" not in stored
    names = {one.name for one in await house.cortex.runtime.db.repository(AllSecretsRepository).list()}
    assert {"setting:metrics_token", "setting:metrics_token:before"} <= names
    await settings.undo(house.admin, "metrics_token")
    assert house.cortex.settings.metrics_token == "first-secret-key"
    await settings.undo(house.admin, "metrics_token")
    assert house.cortex.settings.metrics_token == "second-secret-key"
    logging.getLogger("cortex").warning("it is second-secret-key")
    assert "second-secret-key" not in "\n".join(house.cortex._log_book.tail(20, "INFO"))


async def test_undo_sets_what_was_before_and_unset_what_is_without_the_page(house: LivingHouse) -> None:
    settings = house.cortex.server_settings
    await settings.set(house.admin, {"upload_mb": 30})
    await settings.set(house.admin, {"upload_mb": 40})
    await settings.undo(house.admin, "upload_mb")
    assert house.cortex.settings.upload_mb == 30
    assert await settings.unset(None, "CORTEX_UPLOAD_MB")
    assert house.cortex.settings.upload_mb == 20
    assert not await settings.unset(None, "upload_mb")


async def test_a_value_that_cannot_hold_any_more_is_left_out_of_a_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "ca.pem"
    place.write_text("x")
    async with living_house(tmp_path / "home") as house:
        await house.cortex.server_settings.set(house.admin, {"smtp_ca_file": str(place), "upload_mb": 9})
    place.unlink()
    async with living_house(tmp_path / "home") as house:
        assert (house.cortex.settings.smtp_ca_file, house.cortex.settings.upload_mb) == ("", 9)
    assert "CORTEX_SMTP_CA_FILE as set on the page is not used" in caplog.text


async def test_what_the_tools_are_wired_with_waits_for_a_start(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        await house.cortex.server_settings.set(house.admin, {"brave_api_key": "a-key-of-brave"})
        assert (house.cortex.settings.brave_api_key, house.cortex.server_settings.waits) == ("", {"brave_api_key"})
        assert "WebSearch" not in house.cortex.wired
    async with living_house(tmp_path / "home") as house:
        assert "WebSearch" in house.cortex.wired
        assert house.cortex.server_settings.waits == set()


async def test_one_whose_packages_are_missing_is_refused_and_never_stops_a_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with living_house(tmp_path / "home") as house:
        monkeypatch.setitem(EXTRAS, "ddgs", ("no_such_package", "It is not installed."))
        with pytest.raises(UserError, match="It is not installed"):
            await house.cortex.server_settings.set(house.admin, {"ddgs": True})
        monkeypatch.setitem(EXTRAS, "ddgs", ("asyncio", ""))
        await house.cortex.server_settings.set(house.admin, {"ddgs": True})
    monkeypatch.setitem(EXTRAS, "ddgs", ("no_such_package", "It is not installed."))
    async with living_house(tmp_path / "home") as house:
        assert house.cortex.settings.ddgs is False
