"""An update of a real installation, from its checkout's remote: done, taken back, broken, and killed where it hurts."""

import signal
import sqlite3
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from cortex import VERSION
from cortex.base import versions
from cortex.storage import revisions
from cortex.storage.packing import pack
from cortex.storage.schema import Table
from tests.children import Program
from tests.e2e.browser import Window
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive_absence, go
from tests.e2e.person import allow_once
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule
from tests.versions import NEWER, Installation, environment, install, migration

LIVING = {"alembic_version", "audit", "deliveries", "logins", "mail_accounts", "notices"}  # a start writes to these
LINES = ["Unpacking it", "Making the page's files", "Trying it on a copy", "Making a backup", "is chosen"]
BROKEN = "\n\ndef configured(*_: object) -> uvicorn.Config:\n    raise RuntimeError('this version is broken')\n"

pytestmark = pytest.mark.names_its_database("an installation of its own, with its files")


class InstalledDaemon(Daemon):
    """The daemon of an installation."""

    def __init__(self, home: Path, installation: Installation) -> None:
        super().__init__(home, database_url="")
        self.starts = type("Installed", (Program,), {"python": str(installation.python)})

    def _environment(self) -> dict[str, str]:
        own = super()._environment()
        del own["PYTHONPATH"]
        return environment(self.home, **own)

    @property
    def version(self) -> str:
        """The folder of the version that runs, "" for the installation's own."""
        words = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode().split("\0")
        return Path(words[0]).parents[2].name if f"/{versions.FOLDER}/" in words[0] else ""

    def until_begun_anew(self, lives: int) -> None:
        """Wait until it has said once more where it is."""
        until(lambda: self.log.count("Cortex is at ") > lives)

    @property
    def lives(self) -> int:
        """How often it began."""
        return self.log.count("Cortex is at ")


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = install(tmp_path_factory.mktemp("installation"))
    made.publish(files=migration())
    return made


@pytest.fixture
def lived_in(tmp_path: Path, installation: Installation) -> Iterator[InstalledDaemon]:
    """Its daemon on a home with an admin."""
    made = InstalledDaemon(tmp_path / "home", installation)
    made.start()
    with Caller(made) as ada:
        ada.set_up()
    yield made
    made.close()


@pytest.fixture
def daemon(lived_in: InstalledDaemon) -> InstalledDaemon:
    """The same with a row in every table."""
    lived_in.stop()
    fill(lived_in.home)
    with closing(sqlite3.connect(lived_in.home / "cortex.db")) as opened, opened:
        opened.execute("UPDATE plans SET packed = ?", (pack({}, {}),))  # else housekeeping packs it in between
        opened.execute("UPDATE push_devices SET error = 'This is not a web address.'")  # else news of the update does
    lived_in.start()
    return lived_in


def test_an_update_is_shown_made_and_taken_back(daemon: InstalledDaemon, installation: Installation) -> None:
    before, lives = rows(daemon.home), daemon.lives
    shown = installation.run(daemon.home, ["update", "--preview"])
    assert NEWER in shown.stdout
    assert f"- Bring version {NEWER}" in shown.stdout
    assert "tables: 1." in shown.stdout
    asked = installation.run(daemon.home, ["update"])
    assert (asked.returncode, "use --yes" in asked.stderr) == (1, True)
    assert versions.read(daemon.home) is None
    update(daemon, installation)
    daemon.until_begun_anew(lives)
    assert daemon.version
    after = rows(daemon.home)
    assert {name: after[name] for name in before} == before
    assert after["trials"] == [("one",)]
    assert f"updated from {VERSION}" in told(daemon.home)
    newest = installation.run(daemon.home, ["update", "--preview"])
    assert f"Cortex {NEWER}" in newest.stdout
    assert "newest version" in newest.stdout
    lives = daemon.lives
    done = installation.run(daemon.home, ["update", "--back", "--yes"])
    assert done.returncode == 0, done.stderr
    daemon.until_begun_anew(lives)
    assert daemon.version == ""
    assert rows(daemon.home) == before
    assert "went back" in told(daemon.home)
    refused = installation.run(daemon.home, ["update", "--back", "--yes"])
    assert "no earlier version" in refused.stderr


@pytest.mark.full
def test_an_update_that_is_killed_leaves_the_old_or_the_new_one_whole(
    daemon: InstalledDaemon, installation: Installation
) -> None:
    before = rows(daemon.home)
    for line in LINES:
        killed_after(line, daemon, installation)
        daemon.kill9()
        chosen = versions.read(daemon.home)
        assert (chosen is not None) == (line == LINES[-1])
        daemon.start()
        assert bool(daemon.version) == (chosen is not None)
        with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=PATIENCE_S)) as opened:
            (revision,) = opened.execute("SELECT version_num FROM alembic_version").fetchone()
        assert (revision > revisions.newest()) == (chosen is not None)
        found = rows(daemon.home)
        assert {name: found[name] for name in before} == before
    assert list(daemon.home.glob("versions/.new")) == []


@pytest.mark.full
@pytest.mark.browser
def test_an_admin_updates_and_goes_back_in_a_chat(lived_in: InstalledDaemon, opens: Opens) -> None:
    said = {"preview": NEWER, "install": "is being prepared", "roll_back": f"Cortex goes back to {VERSION}"}
    uses = [rule(f"please {one}", Use("cortex_update", {"action": one}, is_blind=True), "Done.") for one in said]
    with ScriptedServer(*uses) as model, Caller(lived_in) as ada:
        ada.log_in()
        ada.post("/models", name="m", provider="openai", model="s", base_url=model.base_url, api_key="test-key")
        window = opens(lived_in.origin, ada.token)
        for action, words in said.items():
            lives = lived_in.lives
            page = asked(window, lived_in, ada, f"please {action}")
            expect(page.locator("#main")).to_contain_text(words)
            if action != "preview":
                lived_in.until_begun_anew(lives)
                assert bool(lived_in.version) == (action == "install")
                assert told(lived_in.home)
        assert "Update of Cortex" in ada.get("/notifications").text
    forgive_absence(window)


def asked(window: Window, daemon: InstalledDaemon, ada: Caller, text: str) -> Page:
    """The page of a new conversation in which the admin says this and allows what is asked."""
    answer = ada.post("/c/new/messages", text=text, mode="auto", role="admin")
    chat = answer.headers["location"].rpartition("/")[2]
    until(lambda: "Allow once" in ada.get(f"/c/{chat}").text)
    page = go(window, f"/c/{chat}")
    allow_once(page)
    return page


def test_a_version_that_does_not_start_is_taken_back_by_itself(tmp_path: Path) -> None:
    installation = install(tmp_path)
    broken = (installation.root / "web" / "serve.py").read_text(encoding="utf-8") + BROKEN
    installation.publish(files={**migration(), "web/serve.py": broken})
    daemon = InstalledDaemon(tmp_path / "home", installation)
    daemon.start()
    with Caller(daemon) as ada:
        ada.set_up()
    before, lives = rows(daemon.home), daemon.lives
    update(daemon, installation)
    until(lambda: daemon.has_ended)
    for _ in range(versions.TRIES - 1):
        with pytest.raises(AssertionError, match="this version is broken"):
            daemon.start()
    daemon.start()
    try:
        assert daemon.lives == lives + 1
        assert daemon.version == ""
        assert rows(daemon.home) == before
        assert "3 times" in told(daemon.home)
    finally:
        daemon.close()


def test_a_migration_that_fails_on_the_copy_changes_nothing(tmp_path: Path) -> None:
    installation, home = install(tmp_path), tmp_path / "home"
    (name, text), *_ = migration().items()
    installation.publish(files={name: text.replace("op.create_table(", "op.drop_column('accounts', 'nothing', ")})
    assert installation.run(home, ["user", "setup-link"]).returncode == 0
    done = installation.run(home, ["update", "--yes"])
    assert done.returncode == 1
    assert ("The trial" in done.stderr, "nothing was changed" in done.stderr) == (True, True)
    assert versions.read(home) is None
    assert installation.run(home, ["user", "list"]).returncode == 0


@pytest.mark.full
def test_an_installation_that_was_changed_by_hand_runs_what_was_installed(tmp_path: Path) -> None:
    installation, home = install(tmp_path), tmp_path / "home"
    installation.publish("9.0.0")
    assert installation.run(home, ["user", "setup-link"]).returncode == 0
    assert installation.run(home, ["update", "--yes"]).returncode == 0
    commit = installation.publish("9.2.0")
    assert "9.2.0" in installation.run(home, ["update", "--preview"]).stdout
    subprocess.run(["git", "-C", str(installation.root), "pull", "-q"], check=True, timeout=PATIENCE_S)
    now = installation.run(home, ["update", "--preview"])
    assert (f"9.2.0 ({commit[:7]})" in now.stdout, "newest version" in now.stdout) == (True, True)
    assert "by hand" in now.stderr


@pytest.mark.full
def test_what_no_update_can_come_from_is_refused_in_words(tmp_path: Path) -> None:
    installation, home = install(tmp_path), tmp_path / "home"
    container = installation.run(home, ["update", "--preview"], CORTEX_CONTAINER="1")
    assert "runs in a container" in container.stderr
    assert "no database yet" in installation.run(home, ["update", "--yes"]).stderr
    assert installation.run(home, ["user", "setup-link"]).returncode == 0
    (installation.root / "README.md").write_text("", encoding="utf-8")
    assert "uncommitted changes" in installation.run(home, ["update", "--yes"]).stderr
    subprocess.run(["git", "-C", str(installation.root), "checkout", "-q", "."], check=True, timeout=PATIENCE_S)
    installation.remote.rename(tmp_path / "gone")
    assert "git fetch failed" in installation.run(home, ["update", "--yes"]).stderr
    other = tmp_path / "cortex_assistant-1.0-py3-none-any.whl"
    other.write_bytes(b"no zip")
    assert "cannot be read" in installation.run(home, ["update", "--yes", "--wheel", str(other)]).stderr
    assert versions.read(home) is None


@pytest.mark.full
def test_a_wheel_is_installed_and_a_damaged_one_is_not(tmp_path: Path) -> None:
    installation, home = install(tmp_path), tmp_path / "home"
    assert installation.run(home, ["user", "setup-link"]).returncode == 0
    (installation.root / "cortex" / "__init__.py").write_text(f'VERSION = "{VERSION}"\n', encoding="utf-8")
    wheel = installation.wheel(tmp_path / "wheels")
    damaged = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as good, zipfile.ZipFile(damaged, "w") as bad:
        for name in good.namelist():
            bad.writestr(name, good.read(name) + (b"# more" if name == "cortex/app.py" else b""))
    refused = installation.run(home, ["update", "--yes", "--wheel", str(damaged)])
    assert "cortex/app.py" in refused.stderr
    assert versions.read(home) is None
    done = installation.run(home, ["update", "--yes", "--wheel", str(wheel)])
    assert done.returncode == 0, done.stderr
    shown = installation.run(home, ["update", "--preview"])
    assert "a wheel" in shown.stderr
    assert "no account" in installation.run(home, ["user", "list"]).stdout.lower()


def update(daemon: InstalledDaemon, installation: Installation) -> None:
    """Make it, beside the daemon."""
    done = installation.run(daemon.home, ["update", "--yes"])
    assert done.returncode == 0, done.stderr
    assert "the daemon restarts" in done.stdout


def killed_after(line: str, daemon: InstalledDaemon, installation: Installation) -> None:
    """Begin an update, and kill it as soon as it has said so."""
    command = [str(installation.python), "-u", "-m", "web", "update", "--yes"]
    at = environment(daemon.home)
    with subprocess.Popen(command, cwd=installation.root, env=at, stdout=subprocess.PIPE, text=True) as running:
        for said in running.stdout or ():
            if line in said:
                break
        else:
            raise AssertionError(f"{line} was not said")
        running.send_signal(signal.SIGKILL)


def fill(home: Path) -> None:
    """A row in every table that has none: whatever fits its columns, joined to rows that are there."""
    with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as opened, opened:
        opened.execute("PRAGMA foreign_keys = OFF")
        for name in (table.name for table in Table.metadata.sorted_tables):
            if opened.execute(f"SELECT 1 FROM {name}").fetchone() is None:  # noqa: S608 - our own names
                goals = {row[3]: (row[2], row[4]) for row in opened.execute(f"PRAGMA foreign_key_list({name})")}
                columns = opened.execute(f"PRAGMA table_info({name})").fetchall()
                values = [value(opened, column, goals) for column in columns]
                marks = ", ".join("?" * len(values))
                opened.execute(f"INSERT INTO {name} VALUES ({marks})", values)  # noqa: S608 - our own names
        assert opened.execute("PRAGMA foreign_key_check").fetchall() == []


def value(opened: sqlite3.Connection, column: tuple[Any, ...], goals: dict[str, tuple[str, str]]) -> object:
    """Something for a column; None where it may be left out."""
    _, name, kind, is_needed, _, is_key = column
    if name in goals:
        table, other = goals[name]
        there = opened.execute(f"SELECT {other or 'id'} FROM {table}").fetchone()  # noqa: S608 - our own names
        return there[0] if there else None
    if not is_needed and not is_key:
        return None
    if kind.startswith(("INTEGER", "BIGINT", "BOOLEAN", "FLOAT", "NUMERIC")):
        return 0
    return {"DATETIME": "2099-01-01 00:00:00.000000", "JSON": "{}", "BLOB": b"x"}.get(kind, "x")


def rows(home: Path) -> dict[str, list[Any]]:
    """All rows of all tables, but for those that a start writes to."""
    with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as opened:
        found = {}
        for name in names(opened):
            found[name] = sorted(opened.execute(f"SELECT * FROM {name}"), key=repr)  # noqa: S608 - our own names
        return found


def names(opened: sqlite3.Connection) -> list[str]:
    """The tables, less the living ones and those of the full-text index."""
    found = opened.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rootpage").fetchall()
    virtual = tuple(name for name, sql in found if sql and sql.startswith("CREATE VIRTUAL"))
    return [
        name for name, _ in found
        if name not in LIVING and not name.startswith("sqlite_") and not (virtual and name.startswith(virtual))
    ]  # fmt: skip


def told(home: Path) -> str:
    """What admins were notified of, once it is there."""
    found: list[str] = []

    def is_told() -> bool:
        with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as opened:
            found[:] = [text for (text,) in opened.execute("SELECT text FROM notices WHERE title = 'Update of Cortex'")]
        chosen = versions.read(home)
        return chosen is not None and chosen.is_told

    until(is_told)
    return "\n".join(found)


def until(holds: Callable[[], bool]) -> None:
    """Wait for it."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
