"""What a disk or a file's rights refuse, as a sentence that says what to do. Loads nothing heavy: settings need it."""

import errno
import os
import shlex
from pathlib import Path

ROOM = "Make room and start again: what is stored is whole."
WRITABLE = "Mount it writable, or set CORTEX_HOME to a folder that can be written."
_RIGHTS = (errno.EACCES, errno.EPERM)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def of_disk(error: OSError) -> str:
    """The sentence for what a disk or a file's rights refused; "" for other errors."""
    if error.errno in _NO_ROOM and not error.filename:  # a write does not know its file
        return f"The disk is full. {ROOM}"
    return _of_file(error, Path(os.fsdecode(error.filename))) if error.filename else ""


def is_full(error: BaseException) -> bool:
    """Tell whether a disk had no room, or a person's share was used up; of several errors, whether one says so."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_full, error.exceptions))
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def of_folder(folder: Path) -> str:
    """Why nothing can be written in it, and what to do; "" where it can."""
    if is_read_only(folder):
        return f"{str(folder)!r} is on a disk that is mounted read-only. {WRITABLE}"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"{str(folder)!r} cannot be written by this user. {allow(folder)}"
    return ""


def is_read_only(folder: Path) -> bool:
    """Tell whether its disk is mounted read-only."""
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def allow(path: Path) -> str:
    """Return what to do where a file or its folder may not be used."""
    there = path if os.path.exists(path) else path.parent  # not so either in a folder that is closed to us
    name, bits = shlex.quote(str(there)), "rwx" if there.is_dir() else "rw"
    return f"Give it to the user that runs Cortex: chown {os.geteuid()} {name}; chmod u+{bits} {name}"


def _of_file(error: OSError, path: Path) -> str:
    if error.errno == errno.EROFS:
        return f"{str(path)!r} is on a disk that is mounted read-only. {WRITABLE}"
    if error.errno in _NO_ROOM:
        return f"The disk of {str(path)!r} is full. {ROOM}"
    if error.errno in _RIGHTS:
        return f"{str(path)!r} may not be used by this user: {error.strerror}. {allow(path)}"
    if error.errno == errno.EIO:
        return f"The disk of {str(path)!r} fails: {error.strerror}. Check it, and have a backup at hand."
    return ""
