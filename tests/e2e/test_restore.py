"""A backup put back by the real program: from the set-up page of a fresh server, and by `cortex restore`."""

import asyncio
import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.children import Program, environment, run
from tests.databases import house_settings, is_on_postgresql
from tests.e2e.browser import axe, chromium, open_window, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.walled import run_walled
from tests.living_house import living_house
from tests.patience import PATIENCE_S

PASSPHRASE = "tulip quarry lantern"
pytestmark = pytest.mark.skipif(is_on_postgresql(), reason="needs pg_dump; the way back is in tests/services/backup")


@pytest.fixture
def backup(tmp_path: Path) -> tuple[Path, str]:
    """An encrypted backup of a home where ada lives, and the home's key."""
    home = tmp_path / "old" / "home"

    async def made() -> Path:
        async with living_house(home, backup_passphrase=PASSPHRASE) as house:
            return home / "backups" / (await house.cortex.backups.make()).name

    return asyncio.run(made()), house_settings(home).secret_key


def test_the_set_up_page_of_a_fresh_server_restores(tmp_path: Path, backup: tuple[Path, str]) -> None:
    file, key = backup
    daemon = Daemon(tmp_path / "new" / "home")
    daemon.starts = Program
    daemon.start()
    try:
        token = daemon.setup_link.partition("#")[2]
        with Caller(daemon) as caller:
            form = {"token": token, "backup": str(file), "passphrase": PASSPHRASE, "key": key}
            for wrong in ({"passphrase": "x"}, {"key": ""}, {"token": "x"}, {"backup": "/nowhere"}):
                with pytest.raises(AssertionError, match="422"):
                    caller.post("/setup/restore", **{**form, **wrong})
            assert "is being restored" in caller.post("/setup/restore", **form).text
        until = time.monotonic() + PATIENCE_S
        while daemon.log.count("Cortex is at") < 2 and time.monotonic() < until:
            time.sleep(0.1)
        with Caller(daemon) as caller:
            caller.log_in("ada")
            assert caller.get("/tasks").status_code == 200
    finally:
        daemon.close()


@pytest.mark.browser
def test_the_set_up_page_shows_what_nobody_vouches_for_and_asks(tmp_path: Path, backup: tuple[Path, str]) -> None:
    """Here because its key is another one, and none is given."""
    file, _ = backup
    daemon = Daemon(tmp_path / "new" / "home")
    daemon.starts = Program
    daemon.start()
    try:
        form = {"token": daemon.setup_link.partition("#")[2], "backup": str(file), "passphrase": PASSPHRASE}
        with Caller(daemon) as caller:
            shown = caller.send_body(
                "/setup/restore",
                "application/x-www-form-urlencoded",
                urlencode({**form, "accepted": "0" * 64}).encode(),
            )
            assert shown.status_code == 422
            assert "can vouch" in shown.text
            assert re.search(r"<dt>Admins</dt>\s*<dd>ada</dd>", shown.text)
            with chromium() as browser:
                page = open_window(browser, daemon.origin, is_phone=True).page
                page.goto(daemon.setup_link)
                page.get_by_text("Restore a backup instead").click()
                page.get_by_label("Backup").fill(str(file))
                page.get_by_label("Passphrase").fill(PASSPHRASE)
                page.get_by_role("button", name="Restore").click()
                page.get_by_label("Restore this backup although nobody can vouch for it").check()
                assert (overflow_px(page), axe(page)) == (0, [])
            accepted = re.search(r'name="accepted"\s+value="([0-9a-f]{64})"\s+required', shown.text)
            assert accepted
            restored = caller.post("/setup/restore", **form, accepted=accepted[1]).text
            assert "audit log" in restored
        until = time.monotonic() + PATIENCE_S
        while daemon.log.count("Cortex is at") < 2 and time.monotonic() < until:
            time.sleep(0.1)
        with Caller(daemon) as caller:
            caller.log_in("ada")
            assert "vouched for" in caller.get("/health").text
            assert "cortex audit accept" in caller.get("/admin/audit").text
    finally:
        daemon.close()


def test_the_command_restores_and_says_what_is_wrong(tmp_path: Path, backup: tuple[Path, str]) -> None:
    file, key = backup
    home = tmp_path / "new" / "home"
    (tmp_path / "key").write_text(key)
    env = environment(home, CORTEX_BACKUP_PASSPHRASE=PASSPHRASE)
    tried = run(["restore", str(file), "--dry-run"], env=env, cwd=tmp_path)
    assert (tried.returncode, "another secret key" in tried.stderr) == (1, True)
    for wrong, said in (
        (tmp_path, "cannot be read"),
        (tmp_path / "none", "contains no key"),
        (file, "is not a valid key"),
    ):
        tried = run(["restore", str(file), "--key-file", str(wrong)], env=env, cwd=tmp_path)
        assert (tried.returncode, said in tried.stderr, "Traceback" in tried.stderr) == (1, True, False), tried.stderr
    words = ["restore", str(file), "--key-file", str(tmp_path / "key")]
    tried = run([*words, "--dry-run"], env=env, cwd=tmp_path)
    assert "be restored" in tried.stdout, tried.stderr
    assert not (home / "cortex.db").exists()
    assert run(words, env=env, cwd=tmp_path).returncode == 0
    assert "ada" in run(["user", "list"], env=env, cwd=tmp_path).stdout
    made = run(["backup", "--to", str(tmp_path / "place"), "--json"], env=env, cwd=tmp_path)
    assert '"is_encrypted": true' in made.stdout, made.stderr
    assert len(list((tmp_path / "place").iterdir())) == 1
    with_daemon = Daemon(home)
    with_daemon.start()
    try:
        tried = run(words, env=env, cwd=tmp_path)
        assert (tried.returncode, "already serves" in tried.stderr) == (1, True)
    finally:
        with_daemon.close()


def test_a_folder_that_is_mounted_in_home_is_named_before_anything_is_moved(
    tmp_path: Path, backup: tuple[Path, str]
) -> None:
    home = tmp_path / "new" / "home"
    (home / "my skills").mkdir(parents=True)
    (home / "roles.txt").write_text("kept")
    ((code, said),) = run_walled(home, f"mount -t tmpfs none '{home}/my skills'", f"restore {backup[0]}")
    assert code == 1
    assert "my skills in" in " ".join(said.split())
    assert "Unmount it" in said
    assert sorted(path.name for path in home.iterdir() if not path.name.endswith(".lock")) == ["my skills", "roles.txt"]


def test_a_key_that_is_mounted_in_home_stays_there(tmp_path: Path, backup: tuple[Path, str]) -> None:
    home = tmp_path / "new" / "home"
    home.mkdir(parents=True)
    (home / "secret.key").touch(mode=0o600)
    (tmp_path / "key").write_text(backup[1])
    ((code, said),) = run_walled(home, f"mount --bind '{tmp_path}/key' '{home}/secret.key'", f"restore {backup[0]}")
    assert code == 1
    assert "is encrypted" in said
