"""Settings of the page against the real daemon: a start that they let fail, a kill in the trial, the way back."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from tests.children import environment, run
from tests.databases import rows_of
from tests.e2e.caller import Caller
from tests.e2e.crew import Crew
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres

SETTINGS = "/admin/settings"
NOWHERE = "192.0.2.1"  # of no machine (RFC 5737): nobody can listen there


def starts(house: Daemon) -> int:
    return house.log.count("Cortex is at ")


def comes_back(ada: Caller, house: Daemon, order: Callable[[], object]) -> None:
    before = starts(house)
    order()
    poll(lambda: starts(house) > before)


def test_a_start_that_fails_by_what_is_tried_takes_it_back_at_once(house: Daemon, ada: Caller) -> None:
    ada.post(f"{SETTINGS}/address", host="127.0.0.2", allow_plain_http="lan")
    with rows_of(house.home) as rows:  # the machine lost the address that it had when it was typed
        rows.execute(text("UPDATE server_settings SET value = :value WHERE name = 'host'"), {"value": NOWHERE})
    assert "Waiting for a restart" in ada.get(SETTINGS).text
    comes_back(ada, house, lambda: ada.post("/admin/health/restart"))
    assert not house.has_ended
    page = ada.get(SETTINGS).text
    assert "Waiting for a restart" not in page
    assert "Does it still work?" not in page
    assert f"cannot listen on {NOWHERE}" in page
    assert 'value="127.0.0.1"' in page


def test_a_trial_outlives_a_kill_and_ends_by_its_time(house: Daemon, ada: Caller) -> None:
    ada.post(f"{SETTINGS}/address", public_url="https://cortex.example.org")
    house.kill9()
    house.start()
    assert "Does it still work?" in ada.get(SETTINGS).text
    house.kill9()
    with rows_of(house.home) as rows:
        rows.execute(text("UPDATE server_settings SET trial_ends_at = set_at WHERE is_on_trial"))
    house.start()
    page = ada.get(SETTINGS).text
    assert "Does it still work?" not in page
    assert "not confirmed within two minutes" in page


def test_the_command_takes_back_what_locks_out_and_the_server_restarts(house: Daemon, ada: Caller) -> None:
    ada.post(f"{SETTINGS}/limits", upload_mb="77")
    environ = environment(house.home)
    assert "CORTEX_UPLOAD_MB                   page         77" in run(["settings"], env=environ, cwd=house.home).stdout
    told: list[str] = []
    comes_back(
        ada, house, lambda: told.append(run(["settings", "unset", "upload_mb"], env=environ, cwd=house.home).stdout)
    )
    assert "CORTEX_UPLOAD_MB is unset. The server restarts" in told[0]
    assert 'name="upload_mb" type="number" value="20"' in " ".join(ada.get(SETTINGS).text.split())


@pytest.mark.names_its_database("several processes on a server of their own")
def test_another_process_of_the_server_follows(tmp_path: Path) -> None:
    with private_postgres() as url, Crew(tmp_path, url, pages=2) as crew:
        second, first = crew.pages  # the set-up link is that of who started last
        with Caller(first) as ada:
            ada.set_up()
            ada.post(f"{SETTINGS}/address", allowed_hosts="cortex.lan")

        def answers(host: str) -> bool:
            answer = httpx.get(f"{second.origin}/login", headers={"Host": host}, trust_env=False, timeout=PATIENCE_S)
            return answer.status_code != 400

        assert not answers("another.lan")
        poll(lambda: answers("cortex.lan"))
