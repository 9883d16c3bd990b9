"""The page of backups: for admins, says how old the last one is, makes one, and says why it could not."""

from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from tests.databases import is_on_postgresql
from tests.web.conftest import Browser
from tests.web.marks import marks

PAGE = "/admin/backups"
pytestmark = pytest.mark.skipif(
    is_on_postgresql(), reason="needs pg_dump; the making is shown in tests/services/backup"
)


async def test_it_is_for_admins(visitor: httpx.AsyncClient, bob: Browser) -> None:
    assert (await visitor.get(PAGE)).headers["location"].startswith("/login")
    assert (await bob.get(PAGE)).status_code == 403
    assert (await bob.post(PAGE)).status_code == 403


async def test_the_button_makes_one(house: Cortex, ada: Browser) -> None:
    shown = (await ada.get(PAGE)).text
    assert "No backups yet." in shown
    assert "not encrypted" in shown
    assert (await ada.post(PAGE)).status_code == 303
    kept = await house.backups.kept()
    assert len(kept) == 1
    assert kept[0].name in (await ada.get(PAGE)).text
    health = (await ada.get("/health")).text
    assert "0 h old" in health
    assert ("on this machine only" in health, "not encrypted" in health) == (True, True)


async def test_why_it_failed_stands_there(house: Cortex, ada: Browser, tmp_path: Path) -> None:
    (house.settings.home / "backups").write_text("a file in the way")
    refused = await ada.post(PAGE)
    assert refused.status_code == 422
    assert "not be made" in marks(refused).alerts[0]
    assert "not be made" in (await ada.get("/health")).text


async def test_a_backup_is_restored_from_set_up_by_its_link_alone(first_visitor: httpx.AsyncClient) -> None:
    assert "Restore a backup instead" in (await first_visitor.get("/setup")).text
    refused = await first_visitor.post("/setup/restore", data={"token": "guessed", "backup": "/etc/passwd"})
    assert refused.status_code == 422
    assert "passwd" not in refused.text.replace('value="/etc/passwd"', "")
