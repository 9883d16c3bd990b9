"""The seccomp filter of every rung of the sandbox, compiled to the bytes that the kernel and `bwrap --seccomp` take.

A list of refusals, not of permissions: programs of all kinds are to run. Only `sandbox.py` calls it. Numbers are those
of linux/audit.h, bpf_common.h, seccomp.h and asm/unistd.h; a filter is `struct sock_filter[]`, 8 bytes each.
"""

import errno
import platform
import struct
import sys

from msgspec import Struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LOAD, EQUAL, ABOVE, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
ALLOW, KILL, REFUSE, ASK = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
X32 = 0x40000000  # another door to the same calls
SET_ID = 0o6000
MAKES_FILE = 0o20000100  # O_CREAT, or the bit that O_TMPFILE has of its own
NEW_NAMESPACE = 0x7E020000
LAST_FAMILY = 10  # AF_INET6; above it are netlink, vsock, AF_ALG and packets, none of them bound by every namespace
TERMINAL_INPUT = 0x5412  # TIOCSTI: types into the terminal of whoever started Cortex

# By name: the number on x86_64 and on aarch64, -1 where there is none.
CALLS = {
    "ioctl": (16, 29),
    "socket": (41, 198),
    "clone": (56, 220),
    "clone3": (435, 435),
    "open": (2, -1),
    "creat": (85, -1),
    "openat": (257, 56),
    "openat2": (437, 437),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utimensat": (280, 88),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
}
NOT_PERMITTED = {
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "open_by_handle_at": (304, 265),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "syslog": (103, 116),
}
# Unknown to a program is what it knows how to do without.
UNKNOWN = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
}
UNSUPPORTED = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
}
# What Landlock lets through by path: times by old calls, and to watch what others do with their files.
PAST_LANDLOCK = {
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "inotify_add_watch": (254, 27),
    "fanotify_mark": (301, 263),
}


class _Test(Struct, frozen=True):
    """A look at one argument (its lower 32 bits) of a call."""

    argument: int
    operation: int
    value: int


class _Rule(Struct, frozen=True):
    """The fate of a call when all tests hold, and otherwise."""

    call: str
    action: int
    tests: tuple[_Test, ...] = ()
    otherwise: int = ALLOW


def lacking() -> str:
    """Why there is no filter for this machine, or ""."""
    if sys.platform == "linux" and platform.machine() in ARCHITECTURES:
        return ""
    return f"There is no seccomp filter for {sys.platform} {platform.machine()}."


def compiled(*, is_landlock: bool) -> bytes:
    """The filter for this machine; `is_landlock`: for the rung without namespaces.

    There nothing has a network of its own, so no socket is made at all; and Landlock does not look at changes of modes
    and times, so each is handed to the launcher (SECCOMP_RET_USER_NOTIF), which makes it where it may be made.
    """
    machine = list(ARCHITECTURES).index(platform.machine())
    numbers = {**CALLS, **NOT_PERMITTED, **UNKNOWN, **UNSUPPORTED, **(PAST_LANDLOCK if is_landlock else {})}
    lines = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[platform.machine()]), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    lines += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, _refuse(errno.ENOSYS))]
    for rule in _rules(is_landlock=is_landlock):
        if (number := numbers[rule.call][machine]) >= 0:
            body = _body(rule)
            lines += [(EQUAL, 0, len(body), number), *body]
    lines += [(RETURN, 0, 0, ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _refuse(number: int) -> int:
    return REFUSE | number


def _body(rule: _Rule) -> list[tuple[int, int, int, int]]:
    """The lines after a call's number was met; all of them end in an answer."""
    tail = [(RETURN, 0, 0, rule.action)]
    if rule.tests:
        tail.append((RETURN, 0, 0, rule.otherwise))
    made: list[tuple[int, int, int, int]] = []
    for left, test in enumerate(reversed(rule.tests)):
        made = [(LOAD, 0, 0, 16 + 8 * test.argument), (test.operation, 0, 1 + 2 * left, test.value), *made]
    return made + tail


def _rules(*, is_landlock: bool) -> list[_Rule]:
    denied = _refuse(errno.EACCES)
    not_permitted = _refuse(errno.EPERM)
    rules = [
        _Rule("socket", denied) if is_landlock else _Rule("socket", denied, (_Test(0, ABOVE, LAST_FAMILY),)),
        _Rule("clone", not_permitted, (_Test(0, ANY_BIT, NEW_NAMESPACE),)),
        _Rule("ioctl", not_permitted, (_Test(1, EQUAL, TERMINAL_INPUT),)),
        _Rule("utimensat", ASK if is_landlock else ALLOW),
        # Their flags and modes lie behind a pointer, where no filter looks; programs then use the older call.
        _Rule("clone3", _refuse(errno.ENOSYS)),
        _Rule("openat2", _refuse(errno.ENOSYS)),
    ]
    for call, mode in (("open", 2), ("openat", 3)):
        tests = (_Test(mode - 1, ANY_BIT, MAKES_FILE), _Test(mode, ANY_BIT, SET_ID))
        rules.append(_Rule(call, not_permitted, tests))
    rules += [
        _Rule(call, not_permitted, (_Test(mode, ANY_BIT, SET_ID),))
        for call, mode in (("creat", 1), ("mknod", 1), ("mknodat", 2))
    ]
    rules += [
        _Rule(call, not_permitted, (_Test(mode, ANY_BIT, SET_ID),), ASK if is_landlock else ALLOW)
        for call, mode in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2))
    ]
    rules += [_Rule(call, not_permitted) for call in NOT_PERMITTED]
    rules += [_Rule(call, _refuse(errno.ENOSYS)) for call in UNKNOWN]
    rules += [_Rule(call, _refuse(errno.EOPNOTSUPP)) for call in UNSUPPORTED]
    return rules + (_around_landlock(not_permitted) if is_landlock else [])


def _around_landlock(not_permitted: int) -> list[_Rule]:
    """List what Landlock does not look at. Limits and priorities: of the caller alone, all of Cortex has its user."""
    own = (_Test(0, EQUAL, 0),)
    own_priority, own_turn = (*own, _Test(1, EQUAL, 0)), (_Test(0, EQUAL, 1), _Test(1, EQUAL, 0))
    by_process = ("prlimit64", "sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr")
    tests = {**dict.fromkeys(by_process, own), "setpriority": own_priority, "ioprio_set": own_turn}
    of_others = [_Rule(call, ALLOW, test, otherwise=not_permitted) for call, test in tests.items()]
    return [*of_others, *(_Rule(call, not_permitted) for call in PAST_LANDLOCK)]
