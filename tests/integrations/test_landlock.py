"""The second rung alone. Landlock does not bind root, so as root these tests run the launcher as nobody."""

import asyncio
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cortex.integrations import landlock, seccomp
from cortex.integrations.process import ProcessResult, Watch, run
from tests.integrations.bombs import COUNTED
from tests.patience import PATIENCE_S

NOBODY = 65_534
PYTHON = "/usr/bin/python3"
LEFT = """setsid sh -c 'echo $$ > pid; exec sleep 300' >/dev/null 2>&1 & until [ -s pid ]; do sleep 0.02; done"""


def _cannot() -> str:
    if not Path(PYTHON).exists() or (os.geteuid() == 0 and not shutil.which("setpriv")):
        return f"{PYTHON} and setpriv"
    why = landlock.lacking()
    return "" if not why or "root" in why else why


pytestmark = pytest.mark.skipif(bool(_cannot()), reason=f"needs {_cannot()}")


@pytest.fixture
def house() -> Iterator[Path]:
    """A place that nobody may enter, with a workspace, a temporary folder, a secret and a copy of the launcher."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        for folder in ("files", "tmp"):
            (place / folder).mkdir()
            (place / folder).chmod(0o777)
        (place / "secret").write_text("the secret")
        (place / "secret").chmod(0o644)
        shutil.copy(landlock.__file__, place / "launcher.py")
        yield place


async def _bash(house: Path, command: str, *, watches: Sequence[Watch] = (), is_writable: bool = True) -> ProcessResult:
    order = landlock.Order(
        argv=("/bin/bash", "-c", command),
        workspace=str(house / "files"),
        folder=str(house / "files"),
        temporary=str(house / "tmp"),
        is_writable=is_writable,
        processes=30,
        limits={resource.RLIMIT_FSIZE: 1_000_000, resource.RLIMIT_CPU: 5, resource.RLIMIT_AS: 500_000_000},
        readable=(),
        filter=seccomp.compiled(is_landlock=True).hex(),
        env={"PATH": "/usr/bin:/bin"},
    )
    launcher = [PYTHON, "-I", "-S", str(house / "launcher.py"), order.to_text()]
    if os.geteuid() == 0:
        launcher = ["/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *launcher]
    return await run(launcher, cwd=house, timeout_s=PATIENCE_S, env={"PATH": "/usr/bin:/bin"}, watches=watches)


async def test_the_workspace_can_be_used(house: Path) -> None:
    ended = await _bash(house, "echo hello > made && cat made && mkdir d && mv made d/ && ls d")
    assert (ended.out, ended.err, ended.code) == ("hello\nmade\n", "", 0)


async def test_a_read_only_workspace_stays(house: Path) -> None:
    ended = await _bash(house, "echo hello > made", is_writable=False)
    assert ended.code != 0
    assert not (house / "files" / "made").exists()


@pytest.mark.parametrize(
    "command",
    [
        "cat {house}/secret",
        "cat ../secret",
        "cat /etc/passwd",
        "cat /proc/self/environ",
        "cat /proc/1/cmdline",
        "ls {house}",
        "ls /",
        "ln -s {house}/secret l && cat l",
        "ln {house}/secret hard && cat hard",
        "python3 -c 'print(open(\"{house}/secret\").read())'",
    ],
)
async def test_nothing_else_can_be_read(house: Path, command: str) -> None:
    ended = await _bash(house, command.format(house=house))
    assert ended.code != 0
    assert "the secret" not in ended.out
    assert "root:" not in ended.out


@pytest.mark.parametrize("place", ["{house}/x", "../x", "/x", "/usr/x", "/dev/x"])
async def test_nothing_else_can_be_written(house: Path, place: str) -> None:
    ended = await _bash(house, f"echo x > {place.format(house=house)}")
    assert ended.code != 0


@pytest.mark.parametrize(
    "command",
    [
        "exec 3<>/dev/tcp/127.0.0.1/1",
        "exec 3<>/dev/udp/127.0.0.1/1",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'",
        "python3 -c 'import socket; socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)'",
        "python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)'",
    ],
)
async def test_there_are_no_sockets(house: Path, command: str) -> None:
    ended = await _bash(house, command)
    assert ended.code != 0
    assert "Permission denied" in ended.err


@pytest.mark.parametrize("command", ["unshare -U true", "unshare -n true", "kill -0 {pid}"])
async def test_other_processes_and_namespaces_are_out_of_reach(house: Path, command: str) -> None:
    assert (await _bash(house, command.format(pid=os.getpid()))).code != 0


@pytest.mark.parametrize(
    "command",
    [
        "prlimit --pid $PPID --nofile=3:3",
        "renice -n 19 -p $PPID",
        "renice -n 19 -u $UID",
        "taskset -pc 0 $PPID",
        "chrt --idle -p 0 $PPID",
        "ionice -c 3 -p $PPID",
    ],
)
async def test_limits_and_priorities_of_others_stay(house: Path, command: str) -> None:
    ended = await _bash(house, f"{command}; echo $?")
    assert ended.out.splitlines()[-1] != "0"
    assert "not permitted" in ended.err.lower()


async def test_ones_own_limits_and_priority_can_be_set(house: Path) -> None:
    ended = await _bash(house, "set -e; ulimit -n 20; nice -n 5 true; taskset -c 0 true; ionice -c 3 true; echo done")
    assert (ended.out, ended.err) == ("done\n", "")


async def test_limits_hold(house: Path) -> None:
    ended = await _bash(house, "head -c 5000000 /dev/zero > big; stat -c %s big; python3 -c 'bytearray(10**9)'")
    assert ended.out == "1000000\n"
    assert "MemoryError" in ended.err


async def test_a_fork_bomb_meets_the_limit(house: Path) -> None:
    (house / "files" / "bomb.py").write_text(COUNTED)
    ended = await _bash(house, f"{PYTHON} bomb.py")
    assert 30 <= int(ended.out) < 1_000


def _lives(pid: int) -> bool:
    """Whether it runs; one that only waits to be reaped does not."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


async def test_what_it_left_in_the_background_ends(house: Path) -> None:
    ended = await _bash(house, f"{LEFT}; cat pid")
    assert not _lives(int(ended.out))


ODD_ADDRESSES = """
import ctypes
libc = ctypes.CDLL(None)
for address in (1, 1 << 47, 1 << 63, (1 << 64) - 1):
    libc.chmod(ctypes.c_void_p(address), 0o644)
    libc.fchmodat(-1, ctypes.c_void_p(address), 0o644, 0)
    libc.utimensat(-100, b".", ctypes.c_void_p(address), 0)
"""


async def test_a_call_with_odd_addresses_does_not_end_the_guard(house: Path) -> None:
    (house / "files" / "odd.py").write_text(ODD_ADDRESSES)
    ended = await _bash(house, f"{LEFT}; {PYTHON} odd.py; echo done")
    pid = int((house / "files" / "pid").read_text())
    is_left = _lives(pid)
    if is_left:
        os.kill(pid, signal.SIGKILL)
    assert (ended.out, ended.err, is_left) == ("done\n", "", False)


async def test_what_is_killed_leaves_nothing(house: Path) -> None:
    async def started(pid: int) -> str:
        while not (house / "files" / "ready").exists():  # noqa: ASYNC110 - of a process that is no child
            await asyncio.sleep(0.01)
        return "it is ready"

    ended = await _bash(house, f"{LEFT}; : > ready; sleep 300", watches=(started,))
    assert ended.killed == "it is ready"
    async with asyncio.timeout(PATIENCE_S):
        while _lives(int((house / "files" / "pid").read_text())):  # noqa: ASYNC110 - of a process that is no child
            await asyncio.sleep(0.01)


async def test_a_command_that_is_not_there_is_told(house: Path) -> None:
    order_code = (await _bash(house, "no-such-command")).code
    assert order_code == 127
