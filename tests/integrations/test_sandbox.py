"""What runs in the sandbox sees one folder and nothing else, whichever rung of the ladder holds it."""

import asyncio
import os
from pathlib import Path

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.ladder import Level
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox
from tests.patience import PATIENCE_S

SMALL = Limits(
    timeout_s=PATIENCE_S, cpu_s=4, memory_bytes=200 * MB, processes=40, file_bytes=1 * MB, output_bytes=4_000
)


def _usable(level: Level) -> str:
    probe = asyncio.run(Sandbox(forced=level).probe())
    return "" if probe.level == level else probe.reason


LEVELS = [
    pytest.param(level, marks=pytest.mark.skipif(bool(why := _usable(level)), reason=f"needs {level}: {why}"))
    for level in ("bubblewrap", "landlock")
]


@pytest.fixture(params=LEVELS)
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return Sandbox(forced=request.param)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A home with a database and a key beside the workspace."""
    (tmp_path / "files").mkdir()
    (tmp_path / "cortex.db").write_text("rows")
    (tmp_path / "secret_key").write_text("key")
    return tmp_path


async def _bash(sandbox: Sandbox, house: Path, command: str, limits: Limits = SMALL) -> tuple[str, str]:
    ended = await sandbox.run(["bash", "-c", command], workspace=house / "files", limits=limits)
    return ended.out + ended.err, ended.killed


async def test_the_workspace_is_there_to_work_in(sandbox: Sandbox, house: Path) -> None:
    assert await _bash(sandbox, house, "echo hello > made; cat made") == ("hello\n", "")
    assert (house / "files" / "made").read_text() == "hello\n"


async def test_a_read_only_workspace_stays_as_it_is(sandbox: Sandbox, house: Path) -> None:
    await sandbox.run(["bash", "-c", "echo x > made"], workspace=house / "files", limits=SMALL, is_writable=False)
    assert not (house / "files" / "made").exists()


@pytest.mark.parametrize(
    ("workspace", "modes"),
    [
        ("home/ada/files", {"new.txt": 0o600, "run.sh": 0o700, "open.txt": 0o600}),
        ("projects", {"new.txt": 0o644, "run.sh": 0o755, "open.txt": 0o666}),
    ],
    ids=["below HOME", "elsewhere"],
)
@pytest.mark.parametrize("level", LEVELS)
async def test_what_a_program_makes_below_home_is_its_owners_alone(
    tmp_path: Path, level: Level, workspace: str, modes: dict[str, int]
) -> None:
    (tmp_path / workspace).mkdir(parents=True)
    made = "touch new.txt run.sh open.txt; chmod +x run.sh; chmod 666 open.txt"
    before = os.umask(0o022)
    try:
        await Sandbox(forced=level, home=tmp_path / "home").run(
            ["bash", "-c", made], workspace=tmp_path / workspace, limits=SMALL
        )
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / workspace).iterdir()}
    assert found == modes


@pytest.mark.parametrize(
    "command",
    [
        "cat {house}/cortex.db",
        "cat {house}/secret_key",
        "cat ../cortex.db ../secret_key",
        "ls {house}",
        "cat /etc/passwd",
        "cat /etc/shadow",
        "cat /root/.bashrc /home/*/.bashrc",
        "cat /proc/1/environ",
        "ln -s {house}/cortex.db l; cat l",
        "cp /proc/self/cwd/../cortex.db x; cat x",
        "find / -name cortex.db 2>/dev/null | xargs cat",
        "tar cf - {house} 2>/dev/null | strings | grep rows",
        "awk 1 {house}/secret_key",
        "python3 -c 'print(open(\"{house}/secret_key\").read())'",
    ],
)
async def test_nothing_of_the_house_can_be_read(sandbox: Sandbox, house: Path, command: str) -> None:
    text, _ = await _bash(sandbox, house, command.format(house=house))
    lines = text.splitlines()
    assert "rows" not in lines
    assert "key" not in lines
    assert not any(line.startswith("root:") for line in lines)


@pytest.mark.parametrize("place", ["/usr/x", "/etc/x", "/x", "/dev/x", "/var/x", "{house}/x", "../x", "/proc/x"])
async def test_nothing_outside_can_be_written(sandbox: Sandbox, house: Path, place: str) -> None:
    target = place.format(house=house)
    await _bash(sandbox, house, f"echo x > {target}")
    assert not os.path.lexists(os.path.join(house / "files", target))  # noqa: ASYNC240 - a look


@pytest.mark.parametrize(
    "command",
    [
        "exec 3<>/dev/tcp/127.0.0.1/{port} && echo through",
        "exec 3<>/dev/udp/127.0.0.1/{port} && echo x >&3",
        'python3 -c \'import socket; socket.create_connection(("127.0.0.1", {port})); print("through")\'',
        "curl -s http://127.0.0.1:{port}/ && echo through",
    ],
)
async def test_there_is_no_network(sandbox: Sandbox, house: Path, command: str) -> None:
    reached = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        text, _ = await _bash(sandbox, house, command.format(port=server.sockets[0].getsockname()[1]))
    assert "through" not in text.splitlines()
    assert not reached.is_set()


async def test_the_environment_is_ours_alone(sandbox: Sandbox, house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORTEX_SECRET_KEY", "very-secret-value")
    text, _ = await _bash(sandbox, house, "env; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null")
    assert "very-secret-value" not in text
    assert {line.partition("=")[0] for line in text.splitlines() if line[:5].isupper()} <= {
        "PATH", "PWD", "HOME", "TMPDIR", "LANG", "TERM", "USER", "SHLVL", "OLDPWD", "GIT_CONFIG_NOSYSTEM"
    }  # fmt: skip


async def test_there_are_no_capabilities_and_no_new_namespace(sandbox: Sandbox, house: Path) -> None:
    text, _ = await _bash(
        sandbox, house, "unshare -Ur echo inside; unshare -n echo inside; mount -t tmpfs x /tmp && echo inside"
    )
    assert "inside" not in text.splitlines()


async def test_a_fork_bomb_is_ended(sandbox: Sandbox, house: Path) -> None:
    bomb = (
        "f() { [ $1 = 0 ] || { f $(($1 - 1)) & f $(($1 - 1)) & }; exec sleep 300; }; f 7"  # 255: no more than it needs
    )
    _, killed = await _bash(sandbox, house, bomb)
    assert f" {SMALL.processes} processes" in killed
    left = [name for name in os.listdir("/proc") if name.isdigit() and _works_in(name, house / "files")]
    assert left == []


async def test_memory_is_limited(sandbox: Sandbox, house: Path) -> None:
    text, killed = await _bash(
        sandbox, house, "python3 -c 'x = [bytearray(10**7) for _ in range(400)]; print(\"had it\")'"
    )
    assert "had it" not in text
    assert "memory" in (killed + text).lower()


async def test_many_small_eaters_are_limited_together(sandbox: Sandbox, house: Path) -> None:
    one = "python3 -c 'import time; x = bytearray(40_000_000); time.sleep(300)'"
    _, killed = await _bash(sandbox, house, f"for i in 1 2 3 4 5 6 7 8; do {one} & done; wait")
    assert "memory" in killed


async def test_files_are_limited(sandbox: Sandbox, house: Path) -> None:
    await _bash(sandbox, house, "head -c 50000000 /dev/zero > big")
    assert (house / "files" / "big").stat().st_size <= 1 * MB


async def test_output_is_capped(sandbox: Sandbox, house: Path) -> None:
    text, killed = await _bash(sandbox, house, "yes")
    assert len(text) < 5_000
    assert killed


async def test_a_busy_loop_ends(sandbox: Sandbox, house: Path) -> None:
    ended = await sandbox.run(
        ["bash", "-c", "while :; do :; done"], workspace=house / "files", limits=Limits(timeout_s=1.0, cpu_s=20)
    )
    assert "than 1 s" in ended.killed


async def test_what_is_left_in_the_background_ends_with_it(sandbox: Sandbox, house: Path) -> None:
    text, _ = await _bash(sandbox, house, "(setsid sleep 300 >/dev/null 2>&1 &); sleep 300 >/dev/null 2>&1 & echo done")
    assert text == "done\n"
    assert [name for name in os.listdir("/proc") if name.isdigit() and _works_in(name, house / "files")] == []


async def test_a_bubblewrap_that_does_not_work_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no permissions to create a new namespace >&2\nexit 1\n")
    broken.chmod(0o755)
    probe = await Sandbox(forced="bubblewrap", bubblewrap=str(broken)).probe()
    assert probe.level == "none"
    assert "no permissions" in probe.reason


@pytest.mark.parametrize(
    ("refusal", "later"),
    [("Resource temporarily unavailable", "bubblewrap"), ("Operation not permitted", "none")],
    ids=["busy", "refused"],
)
async def test_a_refusal_is_kept_unless_the_machine_was_only_busy(tmp_path: Path, refusal: str, later: Level) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/asked ] && exec echo ready\n: > {tmp_path}/asked\necho {refusal} >&2; exit 1"
    )
    program.chmod(0o755)
    sandbox = Sandbox(forced="bubblewrap", bubblewrap=str(program))
    first, second = await sandbox.probe(), await sandbox.probe()
    assert refusal in first.reason
    assert (first.level, second.level) == ("none", later)


async def test_without_a_sandbox_nothing_runs_and_it_says_why(house: Path) -> None:
    nothing = Sandbox(forced="none")
    assert (await nothing.probe()).level == "none"
    with pytest.raises(ToolFailed, match="no sandbox"):
        await nothing.run(["true"], workspace=house)


async def test_a_missing_bubblewrap_is_told() -> None:
    probe = await Sandbox(forced="bubblewrap", bubblewrap="").probe()
    assert probe.level == "none"
    assert "not installed" in probe.reason


def _works_in(pid: str, folder: Path) -> bool:
    """Whether a process of this machine has its working folder there."""
    try:
        return Path(f"/proc/{pid}/cwd").resolve() == folder and "Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
