"""The second rung of the sandbox: Landlock, a seccomp filter and no_new_privs, where namespaces are refused.

A module for `sandbox.py` (`lacking`, `Order`) and a program of its own (`python -I -S landlock.py ORDER`) that shuts
itself in and runs the order's command. As a program it sees the standard library only. Numbers: linux/landlock.h.
"""

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NICENESS = 10
SLACK = 256  # the kernel counts what the user starts elsewhere meanwhile; the watch holds the command itself
NEEDED_ABI = 6  # the first that keeps signals and abstract sockets inside
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILE_RIGHTS = (1 << 16) - 1  # ABI 5: up to IOCTL_DEV
FILE_ONLY_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | (1 << 14) | (1 << 15)
READ_ONLY = EXECUTE | READ_FILE | READ_DIR
TCP_RIGHTS, SCOPES = 3, 3
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 1, 38, 36
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/lib32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/mime.types",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_FILTER, NEW_LISTENER = 1, 8
RECEIVE, SEND = 0xC0502100, 0xC0182101  # ioctls of the listener
NOTICE, REPLY = "=QIIiIQ6Q", "=QqiI"  # struct seccomp_notif, struct seccomp_notif_resp
OPENAT2, BENEATH, NO_MAGIC_LINKS = 437, 8, 2
AT_FDCWD, AT_SYMLINK_NOFOLLOW = -100, 0x100
PATH_BYTES, TIMES_BYTES = 4_096, 32

# By number: which argument is the folder, the path, the mode or times, the flags; -1 where the call has none.
CHANGES = {
    "x86_64": {90: (-1, 0, 1, -1), 91: (0, -1, 1, -1), 268: (0, 1, 2, -1), 452: (0, 1, 2, 3), 280: (0, 1, 2, 3)},
    "aarch64": {52: (0, -1, 1, -1), 53: (0, 1, 2, -1), 452: (0, 1, 2, 3), 88: (0, 1, 2, 3)},
}
UTIMENSAT = {"x86_64": 280, "aarch64": 88}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A program to run and its walls; `limits` maps numbers of `resource` to values, `filter` is in hex."""

    argv: tuple[str, ...]
    workspace: str
    folder: str
    temporary: str
    is_writable: bool
    processes: int
    limits: dict[int, int]
    readable: tuple[str, ...]
    filter: str
    env: dict[str, str]
    writable: tuple[str, ...] = ()

    def to_text(self) -> str:
        """The order as one argument of the program."""
        return json.dumps(asdict(self))


def lacking() -> str:
    """Why this kernel or machine cannot do it, or ""."""
    if sys.platform != "linux" or platform.machine() not in SECCOMP:
        return f"Landlock is not supported on {sys.platform} {platform.machine()}."
    if os.geteuid() == 0:
        return "Landlock alone does not bind root: run Cortex as a normal user, or install bubblewrap."
    abi = _libc().syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if abi < NEEDED_ABI:
        return f"The kernel's Landlock is version {max(abi, 0)}; {NEEDED_ABI} is needed (Linux 6.12)."
    return ""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(value: int, what: str) -> int:
    if value < 0:
        raise OSError(ctypes.get_errno(), what)
    return value


def _restrict_files(order: Order) -> None:
    """Landlock: nothing but the system read-only, a few devices, the workspace and a temporary folder; no TCP."""
    libc = _libc()
    handled = struct.pack("QQQ", ALL_FILE_RIGHTS, TCP_RIGHTS, SCOPES)
    ruleset = _checked(
        libc.syscall(CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), ctypes.c_uint(0)), "ruleset"
    )
    grants = [(place, READ_ONLY) for place in (*SYSTEM, *order.readable)]
    grants += [(place, READ_FILE | WRITE_FILE) for place in DEVICES]
    grants += [(order.workspace, ALL_FILE_RIGHTS if order.is_writable else READ_ONLY)]
    grants += [(place, ALL_FILE_RIGHTS) for place in (order.temporary, *order.writable)]
    for place, rights in grants:
        with suppress(FileNotFoundError):
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
            given = rights if os.path.isdir(place) else rights & FILE_ONLY_RIGHTS
            rule = struct.pack("=Qi", given, handle)
            _checked(libc.syscall(ADD_RULE, ruleset, ctypes.c_uint(1), rule, ctypes.c_uint(0)), f"rule for {place}")
            os.close(handle)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _checked(libc.syscall(RESTRICT_SELF, ruleset, ctypes.c_uint(0)), "restrict_self")


def _restrict_calls(order: Order) -> int:
    """Lay the filter on; the descriptor on which the kernel asks about what the filter does not settle by itself."""
    code = ctypes.create_string_buffer(bytes.fromhex(order.filter))
    program = struct.pack("HxxxxxxP", (len(code) - 1) // 8, ctypes.addressof(code))
    number = SECCOMP[platform.machine()]
    return _checked(_libc().syscall(number, ctypes.c_uint(SET_FILTER), ctypes.c_uint(NEW_LISTENER), program), "seccomp")


def _own_threads() -> int:
    """Return how many threads this user runs already: the kernel counts them all against RLIMIT_NPROC."""
    count = 0
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _run_shut_in(order: Order, door: socket.socket) -> None:
    """In the child: limits, walls, then the command in its place. Never returns."""
    _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number, value in order.limits.items():
        resource.setrlimit(int(number), (value, value))
    os.nice(NICENESS)
    most = _own_threads() + order.processes + SLACK
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.chdir(order.folder)
    _restrict_files(order)
    socket.send_fds(door, [b"!"], [_restrict_calls(order)])
    env = {**order.env, "HOME": order.temporary, "TMPDIR": order.temporary}
    os.execvpe(order.argv[0], order.argv, env)  # noqa: S606 - the whole point, and no shell


def _kill_the_rest() -> None:
    """Whatever the command left behind has become our child: end it all before we go."""
    while True:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listing:
                for pid in listing.read().split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)
        except (ChildProcessError, FileNotFoundError):
            return


class _Changes:
    """Makes changes of modes and times for the command, below the folders that it may write and nowhere else.

    The path is read once, from the command's memory, and opened by us: what the command does to it meanwhile, or to a
    folder on the way, changes nothing. What is done is done with our rights, so every path is resolved beneath a root.
    """

    def __init__(self, folders: list[str]) -> None:
        self._roots = {os.path.realpath(folder): os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in folders}
        self._libc = _libc()

    def answer(self, listener: int) -> None:
        """Take one call from the kernel, make it or not, and say how it went."""
        notice = bytearray(struct.calcsize(NOTICE))
        try:
            fcntl.ioctl(listener, RECEIVE, notice)
        except OSError:  # whoever asked is gone
            return
        number, pid, _, call, _, _, *arguments = struct.unpack(NOTICE, notice)
        try:
            self._make(pid, call, arguments)
            code = 0
        except OSError as error:
            code = error.errno or errno.EPERM
        except OverflowError:  # an address past what a signed number holds: a thing of the kernel's
            code = errno.EFAULT
        with suppress(OSError):
            fcntl.ioctl(listener, SEND, bytearray(struct.pack(REPLY, number, 0, -code, 0)))

    def _make(self, pid: int, call: int, arguments: list[int]) -> None:
        folder, path, value, flags = (arguments[at] if at >= 0 else None for at in CHANGES[platform.machine()][call])
        base = AT_FDCWD if folder is None else ctypes.c_int(folder & 0xFFFFFFFF).value
        place = os.readlink(f"/proc/{pid}/cwd" if base == AT_FDCWD else f"/proc/{pid}/fd/{base}")
        if path:
            place = os.path.join(place, os.fsdecode(_memory(pid, path, PATH_BYTES).split(b"\0")[0]))
        handle = self._open(os.path.normpath(place), os.O_NOFOLLOW if (flags or 0) & AT_SYMLINK_NOFOLLOW else 0)
        try:
            name = b"/proc/self/fd/%d" % handle
            if call == UTIMENSAT[platform.machine()]:
                times = _memory(pid, value, TIMES_BYTES) if value else None
                _checked(self._libc.utimensat(AT_FDCWD, name, times, 0), "utimensat")
            else:
                os.chmod(name, (value or 0) & 0o1777)
        finally:
            os.close(handle)

    def _open(self, place: str, flags: int) -> int:
        for root, handle in self._roots.items():
            if place == root or place.startswith(f"{root}/"):
                how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC | flags, 0, BENEATH | NO_MAGIC_LINKS)
                rest = os.fsencode(os.path.relpath(place, root))
                return _checked(self._libc.syscall(OPENAT2, handle, rest, how, ctypes.c_size_t(len(how))), place)
        raise PermissionError(errno.EPERM, place)


def _memory(pid: int, address: int, size: int) -> bytes:
    handle = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, address)
    finally:
        os.close(handle)


def _wait(child: int, listener: int, changes: _Changes) -> int:
    """The child's wait status, once it has ended; until then its changes are made."""
    ended = os.pidfd_open(child)
    watched = select.poll()
    watched.register(ended, select.POLLIN)
    watched.register(listener, select.POLLIN)
    while True:
        ready = dict(watched.poll())
        if ended in ready:
            os.close(listener)  # what still asks is refused
            return os.waitpid(child, 0)[1]
        if ready[listener] & select.POLLIN:
            changes.answer(listener)
        else:
            watched.unregister(listener)


def main(text: str) -> int:
    """Run the order; the command's exit code, 126 when the walls could not be built."""
    order = Order(**json.loads(text))
    _checked(_libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    changes = _Changes([order.temporary, *order.writable, *([order.workspace] if order.is_writable else [])])
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            _run_shut_in(order, theirs)
        except OSError as error:
            os.write(2, f"{order.argv[0]}: {error.strerror or error}\n".encode())
        os._exit(126)
    theirs.close()
    handles = socket.recv_fds(ours, 1, 1)[1]
    status = _wait(child, handles[0], changes) if handles else os.waitpid(child, 0)[1]
    _kill_the_rest()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
