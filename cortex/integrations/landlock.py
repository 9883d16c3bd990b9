"""The second rung of the sandbox: Landlock, a seccomp filter and no_new_privs, where namespaces are refused.

A module for `sandbox.py` (`lacking`, `Order`) and a program of its own (`python -I -S landlock.py ORDER`) that shuts
itself in and runs the order's command. As a program it sees the standard library only. Numbers: linux/landlock.h.
"""

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NICENESS = 10
NEEDED_ABI = 6  # the first that keeps signals and abstract sockets inside
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
ALL_FILE_RIGHTS = (1 << 16) - 1  # ABI 5: up to IOCTL_DEV
FILE_ONLY_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | (1 << 14) | (1 << 15)
READ_ONLY = EXECUTE | READ_FILE | READ_DIR
TCP_RIGHTS, SCOPES = 3, 3
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER, PR_SET_SECCOMP = 1, 38, 36, 22
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

# socket, ptrace, process_vm_*, io_uring_*, bpf, perf_event_open, userfaultfd, keyctl and kin, unshare, setns, mounts
DENIED = {
    "x86_64": (
        0xC000003E,
        [41, 101, 310, 311, 425, 426, 427, 321, 298, 323, 248, 249, 250, 272, 308, 165, 166, 428, 429, 442],
    ),
    "aarch64": (
        0xC00000B7,
        [198, 117, 270, 271, 425, 426, 427, 280, 241, 282, 217, 218, 219, 97, 268, 40, 39, 428, 429, 442],
    ),
}
LOAD, JUMP_EQUAL, JUMP_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 13  # EACCES


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run and in which walls; `limits` maps numbers of `resource` to values."""

    argv: tuple[str, ...]
    workspace: str
    folder: str
    temporary: str
    is_writable: bool
    processes: int
    limits: dict[int, int]
    env: dict[str, str]

    def to_text(self) -> str:
        """The order as one argument of the program."""
        return json.dumps(asdict(self))


def lacking() -> str:
    """Why this kernel or machine cannot do it, or ""."""
    if sys.platform != "linux" or platform.machine() not in DENIED:
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
    grants = [(place, READ_ONLY) for place in SYSTEM]
    grants += [(place, READ_FILE | WRITE_FILE) for place in DEVICES]
    grants += [(order.workspace, ALL_FILE_RIGHTS if order.is_writable else READ_ONLY)]
    grants += [(order.temporary, ALL_FILE_RIGHTS)]
    for place, rights in grants:
        with suppress(FileNotFoundError):
            handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
            given = rights if os.path.isdir(place) else rights & FILE_ONLY_RIGHTS
            rule = struct.pack("=Qi", given, handle)
            _checked(libc.syscall(ADD_RULE, ruleset, ctypes.c_uint(1), rule, ctypes.c_uint(0)), f"rule for {place}")
            os.close(handle)
    _checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _checked(libc.syscall(RESTRICT_SELF, ruleset, ctypes.c_uint(0)), "restrict_self")


def _restrict_calls() -> None:
    """Seccomp: no sockets at all (Landlock leaves UDP and unix sockets open), no way to look into other processes."""
    arch, denied = DENIED[platform.machine()]
    lines = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, arch), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    lines += [(JUMP_AT_LEAST, len(denied) + 1, 0, 0x40000000)]  # x32 numbers are another door to the same calls
    lines += [(JUMP_EQUAL, len(denied) - index, 0, number) for index, number in enumerate(denied)]
    lines += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in lines))
    program = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(code))
    _checked(_libc().prctl(PR_SET_SECCOMP, 2, program, 0, 0), "seccomp")


def _own_threads() -> int:
    """How many threads this user runs already: the kernel counts them all against RLIMIT_NPROC."""
    count = 0
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def _run_shut_in(order: Order) -> None:
    """In the child: limits, walls, then the command in its place. Never returns."""
    _libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    for number, value in order.limits.items():
        resource.setrlimit(int(number), (value, value))
    os.nice(NICENESS)
    most = _own_threads() + order.processes
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    os.chdir(order.folder)
    _restrict_files(order)
    _restrict_calls()
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


def main(text: str) -> int:
    """Run the order; the command's exit code, 126 when the walls could not be built."""
    order = Order(**json.loads(text))
    _checked(_libc().prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    child = os.fork()
    if child == 0:
        try:
            _run_shut_in(order)
        except OSError as error:
            os.write(2, f"{order.argv[0]}: {error.strerror or error}\n".encode())
        os._exit(126)
    _, status = os.waitpid(child, 0)
    _kill_the_rest()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
