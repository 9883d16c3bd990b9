"""What a broken disk, database, key or port says: one sentence that tells what to do. Real programs, real files."""

import asyncio
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.settings import load_settings
from tests.children import environment, run
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.e2e.walled import run_walled

pytestmark = pytest.mark.names_its_database("files that are broken")
MODEL = {"name": "cloud", "provider": "openai", "model": "m", "api_key": "sk-very-secret"}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home at rest with an account, a model's key and the keys of push."""
    home = tmp_path_factory.mktemp("faults") / "home"

    async def live() -> None:
        async with Cortex.open(load_settings(None, home=home, port=0)) as cortex:
            await cortex.push_keys.ensure()
            await cortex.accounts.redeem_setup(await cortex.accounts.setup_link(), "Ada", PASSWORD)
            await cortex.models.save(await cortex.accounts.named("Ada"), MODEL)

    asyncio.run(live())
    (home / "serve.lock").write_text("1\n")
    return home


@pytest.fixture
def home(lived_in: Path, tmp_path: Path) -> Path:
    shutil.copytree(lived_in, tmp_path / "home")
    return tmp_path / "home"


def said(home: Path, *words: str, **settings: str) -> str:
    """What a command that fails says: no traceback, exit code 1."""
    done = run(words, env=environment(home, **{"CORTEX_PORT": "0", **settings}), cwd=home.parent)
    printed = done.stdout + done.stderr
    assert (done.returncode, "Traceback" in printed) == (1, False), printed
    return printed


def told(printed: str) -> str:
    """The one line of a start that was refused."""
    lines = [line for line in printed.splitlines() if line.startswith("cortex: ")]
    assert len(lines) == 1, printed
    return lines[0]


def bad(printed: str, name: str) -> str:
    """What the doctor found to be bad under this name, with what to do."""
    found = re.search(rf"^BAD   {name}: (.*(?:\n      .*)?)", printed, re.MULTILINE)
    assert found, printed
    return found[1]


def trash(path: Path) -> None:
    path.write_bytes(os.urandom(100_000))


def bore(path: Path) -> None:
    """A hole in the middle: the head is whole."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(40 * 4096))


def bore_far(path: Path) -> None:
    """A hole in the last page, which nothing reads at the start."""
    with path.open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(b"\xff" * 4096)


@pytest.mark.parametrize("spoil", [trash, bore], ids=["no database", "a hole in it"])
@pytest.mark.parametrize(
    ("name", "finding", "what_to_do"),
    [("cortex.db", "database", "put a backup of cortex.db back"), ("engine.db", "engine", "engine.db.damaged")],
    ids=["cortex.db", "engine.db"],
)
def test_a_damaged_database_is_named_with_what_to_do(
    home: Path, spoil: Callable[[Path], None], name: str, finding: str, what_to_do: str
) -> None:
    spoil(home / name)
    before = (home / name).read_bytes()
    refused = told(said(home, "serve"))
    assert f"The database '{home / name}' is damaged: " in refused
    assert what_to_do in refused
    assert refused.removeprefix("cortex: ") in bad(said(home, "doctor"), finding)
    assert (home / name).read_bytes() == before


@pytest.mark.parametrize(("name", "finding"), [("cortex.db", "database"), ("engine.db", "engine")])
def test_the_doctor_finds_damage_that_a_start_does_not_meet(home: Path, name: str, finding: str) -> None:
    bore_far(home / name)
    assert "is damaged" in bad(said(home, "doctor"), finding)


def test_commands_say_the_same_of_a_damaged_database(home: Path) -> None:
    trash(home / "cortex.db")
    assert "is damaged" in told(said(home, "user", "list"))


def test_without_the_engines_file_the_daemon_starts_and_conversations_are_whole(daemon: Daemon) -> None:
    daemon.start()
    with Caller(daemon) as ada:
        ada.set_up()
        chat = ada.send("new", "hello there")
        poll(lambda: 'class="foot"' in ada.get(f"/c/{chat}").text)
        daemon.stop()
        for path in daemon.home.glob("engine.db*"):
            path.unlink()
        daemon.start()
        assert "hello there" in ada.get(f"/c/{chat}").text
        again = ada.send(chat, "and again")
        poll(lambda: ada.get(f"/c/{again}").text.count('class="foot"') == 2)


WALLS = {
    "a read-only disk": (
        "mount --bind {home} {home} && mount -o remount,ro,bind {home}",
        r"'\S+/serve.lock' is on a disk that is mounted read-only\. Mount it writable, or set CORTEX_HOME",
        r"BAD   disk: '\S+' is on a disk that is mounted read-only\. Mount it writable",
    ),
    "a full disk": (
        "mount -t tmpfs -o size=4m none {spare} && cp -a {home}/. {spare} && mount --move {spare} {home}"
        " && (dd if=/dev/zero of={home}/fill bs=1k 2>/dev/null; chmod 600 {home}/fill)",
        r"The disk of the database '\S+/cortex.db' is full\. Make room and start again",
        r"BAD   disk: 0 MB free",
    ),
    "a full new disk": (
        "mount -t tmpfs -o size=64k none {home} && (dd if=/dev/zero of={home}/fill bs=4k 2>/dev/null; true)",
        r"The disk is full\. Make room and start again",
        r"BAD   database: The disk of the database '\S+/cortex.db' is full",
    ),
    "cortex.db closed": (
        "chmod 0 {home}/cortex.db",
        r"The database '\S+/cortex.db' may not be used by this user: .*chown \d+ \S+/cortex.db; chmod u\+rw",
        r"BAD   files: In '\S+' this user may not read or write 'cortex.db'\.\n      chmod u\+rw \S+/cortex.db",
    ),
    "engine.db closed": (
        "chmod 0 {home}/engine.db",
        r"The database '\S+/engine.db' may not be used by this user: ",
        r"BAD   engine: The database '\S+/engine.db' may not be used by this user",
    ),
    "secret.key closed": (
        "chmod 0 {home}/secret.key",
        r"CORTEX_HOME: '\S+/secret.key' may not be used by this user: .*chmod u\+rw \S+/secret.key",
        r"CORTEX_HOME: '\S+/secret.key' may not be used by this user: ",
    ),
    "HOME closed": (
        "chmod 0 {home}",
        r"CORTEX_HOME: '\S+/secret.key' may not be used by this user: .*chmod u\+rwx \S+/home$",
        r"CORTEX_HOME: '\S+/secret.key' may not be used by this user: ",
    ),
}


IN_EVERY_RUN = ("a read-only disk", "a full disk", "cortex.db closed")  # the others start as many programs again


@pytest.mark.parametrize(
    ("setup", "of_serve", "of_doctor"),
    [
        pytest.param(*wall, id=name, marks=[] if name in IN_EVERY_RUN else [pytest.mark.full])
        for name, wall in WALLS.items()
    ],
)
def test_what_a_disk_refuses_is_one_sentence(home: Path, setup: str, of_serve: str, of_doctor: str) -> None:
    (home.parent / "spare").mkdir()
    done = run_walled(home, setup.format(home=home, spare=home.parent / "spare"), "serve", "doctor")
    home.chmod(0o700)
    assert [code for code, _ in done] == [1, 1], done
    assert "Traceback" not in done[0][1] + done[1][1]
    assert re.search(of_serve, told(done[0][1])), done[0][1]
    assert re.search(of_doctor, done[1][1]), done[1][1]


def test_a_start_on_a_full_disk_leaves_no_half_key_behind(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret.key").touch(mode=0o600)  # what such a start left in earlier versions
    run(("user", "setup-link"), env=environment(home), cwd=tmp_path)
    assert len((home / "secret.key").read_text().strip()) >= 48


def lose(home: Path) -> None:
    (home / "secret.key").unlink()


def swap(home: Path) -> None:
    (home / "secret.key").write_text("another key " * 5)


@pytest.mark.parametrize("spoil", [lose, swap], ids=["lost", "another one"])
def test_without_the_key_nothing_starts_and_no_new_one_is_made(home: Path, spoil: Callable[[Path], None]) -> None:
    key = (home / "secret.key").read_text()
    spoil(home)
    left = sorted(path.name for path in home.iterdir())
    refused = told(said(home, "serve"))
    [model] = set(re.findall(r"Ada/model:\w+", refused))  # in the sentence and in the command
    assert ("2 of 2" in refused, f"server/push, {model}" in refused) == (True, True)
    assert f"give-up server/push {model}" in refused
    assert "secret.key back" in refused
    assert "secrets give-up" in bad(said(home, "doctor"), "secrets")
    assert told(said(home, "user", "list")) == refused
    assert sorted(path.name for path in home.iterdir() if "-" not in path.name) == left
    (home / "secret.key").write_text(key)
    listed = run(("secrets", "list", "--json"), env=environment(home), cwd=home.parent)
    assert [one["opens"] for one in json.loads(listed.stdout)] == [True, True]
    assert "no account" not in run(("user", "list"), env=environment(home), cwd=home.parent).stderr


def test_lost_secrets_are_given_up_by_name_and_entered_anew(home: Path) -> None:
    lose(home)
    daemon = Daemon(home)
    [model] = set(re.findall(r"Ada/model:\w+", told(said(home, "serve"))))
    assert "'Bob/x'" in told(said(home, "secrets", "give-up", "server/push", "Bob/x"))
    given_up = run(("secrets", "give-up", "server/push", model), env=environment(home), cwd=home.parent)
    assert (given_up.returncode, given_up.stdout) == (0, f"Deleted: server/push, {model}.\n")
    try:
        daemon.start()
        refused = told(said(home, "secrets", "give-up", "server/push"))
        assert "Cortex is running" in refused
        with Caller(daemon) as ada:
            ada.log_in()
            ada.post("/models", previous="cloud", **{**MODEL, "api_key": "sk-a-new-one"})
            assert "stored" in ada.get("/models").text
        daemon.stop()
    finally:
        daemon.close()
    assert "current key" in told(said(home, "secrets", "give-up", "server/push"))


def test_a_port_that_is_taken_is_named(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = told(said(home, "serve", CORTEX_PORT=port))
        assert all(part in refused for part in ("CORTEX_PORT:", f"127.0.0.1:{port}", "another port"))
        assert "CORTEX_PORT" in bad(said(home, "doctor", CORTEX_PORT=port), "port")


def test_a_port_that_cortex_itself_has_is_no_fault(daemon: Daemon) -> None:
    daemon.start()
    examined = run(("doctor",), env=environment(daemon.home, CORTEX_PORT=str(daemon.port)), cwd=daemon.home)
    assert examined.returncode == 0, examined.stdout
    assert "note  port: " in examined.stdout


@pytest.mark.parametrize(("moved_s", "way"), [(86_400, "forwards"), (-86_400, "backwards")])
def test_a_clock_that_was_set_while_the_daemon_runs_is_named(daemon: Daemon, moved_s: int, way: str) -> None:
    daemon.start()
    lock = daemon.home / "serve.lock"
    pid, clocks = lock.read_text().splitlines()
    wall, machine = clocks.split()
    lock.write_text(f"{pid}\n{float(wall) - moved_s} {machine}\n")
    examined = run(("doctor",), env=environment(daemon.home, CORTEX_PORT=str(daemon.port)), cwd=daemon.home)
    assert f"It was set {way} by 1 day, 0:00:0" in bad(examined.stdout, "clock")


def test_a_broken_registry_is_shown_and_the_last_good_one_comes_back(daemon: Daemon) -> None:
    daemon.start()
    with Caller(daemon) as ada:
        ada.set_up()
        ada.post("/models", **MODEL)
        [file] = daemon.home.glob("*/model_registry.json")
        good = file.read_text()
        file.write_text(good[:-20])
        for page in ("/health", "/c/new", "/models", "/account"):
            shown = ada.get(page)
            assert (shown.status_code, "model_registry.json" in shown.text) == (200, True), page
        assert "cloud</a>" not in ada.get("/models").text
        daemon.restart()
        examined = run(("doctor",), env=environment(daemon.home), cwd=daemon.home)
        assert "model_registry.json" in bad(examined.stdout, "files of Ada")
        assert 'action="/models/restore"' in ada.get("/models").text
        ada.post("/models/restore")
        assert "cloud</a>" in ada.get("/models").text
        assert (file.read_text(), file.with_name("model_registry.broken.json").read_text()) == (good, good[:-20])
