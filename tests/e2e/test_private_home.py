"""HOME is its owner's alone, whatever the umask and whoever made the folder. Real daemon, real commands."""

import asyncio
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.integrations.sandbox import Sandbox
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll

SHELL = "/admin/tools/shell_exec/call"
WRITE = "/admin/tools/file_write/call"
MAKES = (
    "mkdir -p deep/er && echo 'echo hi' > deep/er/run.sh && chmod 755 deep/er/run.sh && umask 0 && echo 1 > open.txt"
)
STRANGER = 12_345
QUESTION = r'action="/approvals/([\w-]+)"'


@pytest.fixture(params=[0o000, pytest.param(0o022, marks=pytest.mark.full)], ids=["umask 000", "umask 022"])
def loose(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that is not started yet, in a folder that everybody may enter."""
    made = Daemon(tmp_path / "home", umask=request.param)
    yield made
    made.close()


def modes(home: Path) -> dict[str, int]:
    """Every path in HOME that is no link, with its bits."""
    paths = [home, *home.rglob("*")]
    return {str(one.relative_to(home)): stat.S_IMODE(one.lstat().st_mode) for one in paths if not one.is_symlink()}


def open_to_others(home: Path) -> dict[str, str]:
    return {path: f"{mode:04o}" for path, mode in modes(home).items() if mode & 0o077}


def by_hand(person: Caller, place: str, **arguments: str) -> str:
    """Make a call from a tool's page, the question answered with yes; the page that shows how it ended."""
    asked = person.post(place, **arguments)
    sure = re.search(r'name="sure"\s+value="([^"]+)"', asked.text)
    done = person.post(place, sure=sure[1], **arguments) if sure else asked
    shown = done.headers["location"].partition("#")[0]
    for question in re.findall(QUESTION, poll(lambda: _waiting(person.get(shown).text))):
        person.post(f"/approvals/{question}", choice="once")
    return str(poll(lambda: _ended(person.get(shown).text)))


def _waiting(page: str) -> str:
    return page if re.search(QUESTION, page) else _ended(page)


def _ended(page: str) -> str:
    return "" if 'hx-trigger="load delay:1s"' in page else page


@pytest.fixture
def has_sandbox() -> None:
    probe = asyncio.run(Sandbox().probe())
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")


@pytest.mark.usefixtures("has_sandbox")
@pytest.mark.names_its_database("the files of SQLite")
def test_whatever_a_person_does_leaves_nothing_for_others_to_read(loose: Daemon) -> None:
    loose.start()
    with Caller(loose) as ada:
        ada.set_up()
        chat = ada.send("new", "add milk to my shopping list")
        poll(lambda: 'class="foot"' in ada.get(f"/c/{chat}").text)
        ada.post("/notes", name="garden")
        ada.post("/confirm", password=PASSWORD)
        by_hand(ada, WRITE, **{"a.path": "letters/first.txt", "a.text": "Dear all"})
        by_hand(ada, SHELL, **{"a.command": MAKES})
        found = modes(loose.home)
        assert {"engine.db", "engine.db-wal", "engine.db-shm", "serve.lock", "secret.key"} <= set(found)
        assert open_to_others(loose.home) == {}
        made = {path.partition("/files/")[2]: mode for path, mode in found.items() if "/files/" in path}
        assert {"deep/er/run.sh": 0o700, "open.txt": 0o600, "letters/first.txt": 0o600, "letters": 0o700}.items() <= (
            made.items()
        )
    loose.restart()
    assert open_to_others(loose.home) == {}


def test_what_stood_open_is_closed_at_the_start_and_no_link_is_followed(loose: Daemon, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "letter.txt").write_text("not yours")
    for folder in (loose.home, loose.home / "someone", loose.home / "someone" / "files"):
        folder.mkdir()
        folder.chmod(0o777)
    for name, mode in {"engine.db": 0o644, "someone/files/run.sh": 0o755, "someone/files/a.txt": 0o666}.items():
        (loose.home / name).touch()
        (loose.home / name).chmod(mode)
    (loose.home / "someone" / "files" / "out").symlink_to(outside)
    (loose.home / "someone" / "letter").symlink_to(outside / "letter.txt")
    before = {path: path.stat().st_mode for path in (outside, outside / "letter.txt")}
    loose.start()
    assert open_to_others(loose.home) == {}
    assert modes(loose.home)["someone/files/run.sh"] == 0o700
    assert {path: path.stat().st_mode for path in before} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to somebody else")
@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (".", f"belongs to the user number {STRANGER}"),
        ("someone", "another user owns files in"),
        ("someone/files/a.txt", "'someone/files/a.txt'"),
    ],
    ids=["HOME itself", "a folder", "a file"],
)
def test_a_daemon_refuses_a_home_in_which_another_user_owns_something(daemon: Daemon, theirs: str, words: str) -> None:
    (daemon.home / "someone" / "files").mkdir(parents=True)
    (daemon.home / "someone" / "files" / "a.txt").touch()
    os.chown(daemon.home / theirs, STRANGER, STRANGER)
    with pytest.raises(AssertionError, match="did not get ready, code 1"):
        daemon.start()
    told = [line for line in daemon.log.splitlines() if line.startswith("cortex: CORTEX_HOME: ")]
    assert len(told) == 1
    assert words in told[0]
    assert f"chown -R {os.geteuid()} {daemon.home}" in told[0]
    assert not (daemon.home / "engine.db").exists()
