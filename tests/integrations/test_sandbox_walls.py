"""Each rung keeps modes, owners and bits where they were outside its walls, and what it adds to the disk in bounds."""

import os
import stat
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import Limits
from tests.integrations.rungs import Rung, lacking, rung_on
from tests.patience import PATIENCE_S

RUNGS = [
    pytest.param(level, marks=pytest.mark.skipif(bool(why := lacking(level)), reason=f"needs {level}: {why}"))
    for level in ("bubblewrap", "landlock")
]
LIMITS = Limits(timeout_s=PATIENCE_S)
SMALL = replace(LIMITS, growth=Quota(most_bytes=20 * MB, most_files=300))
FILL = "for i in $(seq 400); do head -c 2000000 /dev/zero > big$i; done; sleep 300"
MANY = "mkdir d; for i in $(seq 100000); do : > d/f$i; done; sleep 300"
NAMELESS = """python3 -c "
import os, time
kept = []
while len(kept) < 100:
    kept.append(os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600))
    os.write(kept[-1], bytes(2_000_000))
time.sleep(300)
" """
SYMLINKED = "ln -s {secret} link; chmod 644 link; chmod 644 ./sub/../link; touch link"
CALLS = """python3 -c "
import ctypes, os
libc = ctypes.CDLL(None)
handle = os.open('{secret}', os.O_PATH)
libc.syscall(452, handle, b'', 0o644, 0x1000)
libc.fchmodat(-100, b'{secret}', 0o644, 0)
libc.chmod(b'/proc/self/fd/%d' % handle, 0o644)
libc.chmod(b'/proc/self/cwd/../secret', 0o644)
libc.setxattr(b'{secret}', b'user.x', b'1', 1, 0)
os.chdir('/')
libc.chmod(b'{secret}', 0o644)
" """
SET_ID = [
    "cp /bin/sh x; chmod 4755 x",
    "cp /bin/sh x; chmod u+s,g+s x",
    "install -m 4755 /bin/sh x",
    "python3 -c 'import os; os.umask(0); os.open(\"x\", os.O_CREAT | os.O_WRONLY, 0o6755)'",
    "python3 -c 'import os; os.umask(0); os.mknod(\"x\", 0o104755)'",
    "python3 -c 'import os; os.fchmod(os.open(\"x\", os.O_CREAT | os.O_WRONLY), 0o4755)'",
    "python3 -c 'import ctypes; ctypes.CDLL(None).creat(b\"x\", 0o4755)'",
    "python3 -c 'import ctypes, struct; ctypes.CDLL(None).syscall("
    '437, -100, b"x", struct.pack("QQQ", 0o101, 0o4755, 0), 24)\'',
    "echo > a; chmod 755 a; tar cf t --mode=4755 a; rm a; tar xpf t; mv a x",
    "mkdir x; chmod g+s x",
]
DOORS = [
    "ipcmk -M 1000000",
    "python3 -c 'import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)'",
    "python3 -c 'import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)'",
    "unshare -U true",
    "python3 -c 'import ctypes; exit(0 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0 else 1)'",
    "python3 -c 'import ctypes; exit(0 if ctypes.CDLL(None).syscall(425, 4, bytes(200)) >= 0 else 1)'",
]


@pytest.fixture(params=RUNGS)
def rung(request: pytest.FixtureRequest) -> Iterator[Rung]:
    with rung_on(request.param) as made:
        yield made


@pytest.mark.parametrize(
    "command",
    [
        "chmod 644 {secret}",
        "chmod 644 ../secret; cd /; chmod 644 {secret}",
        SYMLINKED,
        CALLS,
        "touch -d 2001-01-01 {secret}; perl -e 'utime 1, 1, q({secret})'",
        "chown nobody {secret}; chgrp 1 {secret}; setfattr -n user.x -v 1 {secret}",
    ],
    ids=["path", "relative", "link", "calls", "times", "owner"],
)
async def test_nothing_about_a_file_outside_changes(rung: Rung, command: str) -> None:
    before = rung.secret.stat()
    ended = await rung.run(command.format(secret=rung.secret) + "; echo done")
    after = rung.secret.stat()
    assert ended.out.endswith("done\n"), ended.err
    for fact in ("st_mode", "st_mtime_ns", "st_ctime_ns", "st_uid", "st_gid"):
        assert getattr(after, fact) == getattr(before, fact), fact
    assert os.listxattr(rung.secret) == []


async def test_modes_and_times_inside_can_be_changed(rung: Rung) -> None:
    ended = await rung.run(
        "set -e; mkdir d; echo > d/run; chmod +x d/run; touch -d @1000000000 d/run; "
        "(cd d; chmod 500 ../d/run; chmod 700 .)"
        "; cp -p d/run copy; cp -p copy $TMPDIR/x; chmod 700 $TMPDIR/x; ln -s d/run link; touch -h -d @1 link"
        "; git init -q"
    )
    assert (ended.code, ended.err) == (0, "")
    for name in ("d/run", "copy"):
        about = (rung.files / name).stat()
        assert (stat.S_IMODE(about.st_mode) & 0o777, about.st_mtime) == (0o500, 1e9)
    assert (rung.files / "link").lstat().st_mtime == 1


async def test_a_read_only_workspace_keeps_its_modes(rung: Rung) -> None:
    mine = rung.files / "mine"
    mine.write_text("x")
    os.chown(mine, rung.files.stat().st_uid, -1)
    mine.chmod(0o600)
    await rung.run("chmod 640 mine; chmod 750 .; touch -d 2001-01-01 mine", is_writable=False)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o600
    assert mine.stat().st_mtime > 1e9


async def test_no_setuid_file_is_left(rung: Rung) -> None:
    ended = await rung.run("\n".join(f"mkdir {n}; (cd {n}; {command})" for n, command in enumerate(SET_ID)))
    assert ended.killed == ""
    assert [path for path in rung.files.rglob("*") if path.lstat().st_mode & 0o6000] == []
    assert (rung.files / "0" / "x").exists()


async def test_the_filter_refuses_doors_to_the_kernel(rung: Rung) -> None:
    ended = await rung.run(
        "\n".join(f"{command} && echo through-{n}" for n, command in enumerate(DOORS)) + "\necho done"
    )
    assert ended.out == "done\n"


async def test_every_process_has_the_filter(rung: Rung) -> None:
    ended = await rung.run('python3 -c "import ctypes; print(ctypes.CDLL(None).prctl(21))"')  # PR_GET_SECCOMP
    assert ended.out == "2\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (FILL, "it added more than 20 MB or 300 files"),
        (MANY, "it added more than 20 MB or 300 files"),
        (NAMELESS, "in files without a name"),
    ],
    ids=["bytes", "files", "nameless"],
)
async def test_a_command_that_fills_the_disk_is_stopped(rung: Rung, command: str, reason: str) -> None:
    ended = await rung.run(command, limits=SMALL)
    assert reason in ended.killed
    assert "still there" in ended.killed


@pytest.mark.parametrize("rung", RUNGS[1:], indirect=True)  # for root, who may run the other, no folder is closed
async def test_a_folder_that_hides_its_files_stops_the_command(rung: Rung) -> None:
    ended = await rung.run("mkdir d; chmod 300 d; sleep 300", limits=SMALL)
    assert "looked into" in ended.killed


async def test_what_is_there_already_is_not_held_against_a_command(rung: Rung) -> None:
    made = await rung.run("for i in $(seq 8); do head -c 2000000 /dev/zero > big$i; done", limits=SMALL)
    again = await rung.run("for i in $(seq 8); do head -c 2000000 /dev/zero > more$i; done; sleep 0.5", limits=SMALL)
    assert (made.killed, again.killed) == ("", "")


async def test_a_full_workspace_can_be_cleared_but_not_filled(rung: Rung) -> None:
    total = Quota(most_bytes=10 * MB, most_files=1_000)
    await rung.run("for i in $(seq 6); do head -c 2000000 /dev/zero > big$i; done")
    more = await rung.run("for i in $(seq 99); do head -c 2000000 /dev/zero > more$i; done; sleep 300", total=total)
    assert ("10 MB" in more.killed, "1,000 files" in more.killed) == (True, True)
    assert (await rung.run("rm -r big* more*; sleep 0.5; echo cleared", total=total)).out == "cleared\n"
    assert (await rung.run("echo > new; sleep 0.5", total=total)).killed == ""


async def test_the_temporary_folder_is_bounded_too(rung: Rung) -> None:
    small = replace(LIMITS, temporary_bytes=8 * MB)
    ended = await rung.run(
        "for i in {1..50}; do head -c 2000000 /dev/zero > $TMPDIR/big$i || { du -sk $TMPDIR; exit; }; done; sleep 300",
        limits=small,
    )
    assert "than 8 MB" in ended.killed or int(ended.out.split()[0]) <= 8_192


async def test_shared_memory_counts_as_memory(rung: Rung) -> None:
    ended = await rung.run(
        "python3 -c 'import mmap, time; m = mmap.mmap(-1, 400_000_000); m.write(bytes(400_000_000)); time.sleep(300)'",
        limits=replace(LIMITS, memory_bytes=200 * MB),
    )
    assert "memory" in ended.killed
