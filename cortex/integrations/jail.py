"""Opens paths below a folder and nowhere else, whatever the path says and whoever renames things meanwhile.

Linux' openat2 does it in one step; where the kernel lacks it, each component is opened by itself, never through a link.
Only `files.py` calls this.
"""

import ctypes
import errno
import os
import re
import stat
import struct

from cortex.base.errors import ToolFailed

OPENAT2 = 437
NO_MAGIC_LINKS, NO_SYMLINKS, BENEATH = 2, 4, 8
TRIES = 8
PATH_BYTES = 1_024
ALWAYS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
SURROGATES = re.compile("[\ud800-\udfff]")
HARD_REFUSALS = (errno.EXDEV, errno.ELOOP, errno.ENXIO)


def clean(path: str) -> str:
    """The path with "." and doubled slashes gone, "." for the folder itself; ToolFailed when it could mean outside."""
    if "\0" in path or len(path.encode("utf-8", "replace")) > PATH_BYTES or SURROGATES.search(path):
        raise ToolFailed("That path is not valid.")
    if path.startswith(("/", "~", "\\")):
        raise ToolFailed(f"{path!r} is not inside your folders: write it without a leading / or ~.")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolFailed(f"{path!r} is not inside your folders: '..' is not allowed.")
    return "/".join(parts) or "."


def open_below(root: int, path: str, flags: int, *, is_old_kernel: bool = False) -> int:
    """A descriptor of `path` below the descriptor `root`; OSError as open(2), ToolFailed when it leads outside."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW if flags & os.O_PATH else ALWAYS  # openat2 takes no others with O_PATH
    try:
        if not is_old_kernel:
            return _openat2(root, clean(path), flags)
    except OSError as error:
        if error.errno in HARD_REFUSALS:
            raise ToolFailed(f"{path!r} is a link, a device or outside your folders; it was not opened.") from error
        if error.errno not in (errno.ENOSYS, errno.EPERM, errno.E2BIG):
            raise
    return _walk(root, clean(path), flags)


def open_regular(root: int, path: str, *, is_old_kernel: bool = False) -> int:
    """A descriptor for reading the ordinary file `path`; ToolFailed for folders, devices, pipes and sockets."""
    handle = open_below(root, path, os.O_RDONLY, is_old_kernel=is_old_kernel)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    what = "a folder" if stat.S_ISDIR(mode) else "not an ordinary file"
    raise ToolFailed(f"{path!r} is {what}.")


def open_folder(root: int, path: str, *, make: bool = False, is_old_kernel: bool = False) -> int:
    """A descriptor of the folder `path`, made on the way if `make`."""
    if make:
        parts = clean(path).split("/")
        for count in range(1, len(parts) + 1):
            parent = open_below(root, "/".join(parts[: count - 1]), os.O_DIRECTORY, is_old_kernel=is_old_kernel)
            try:
                os.mkdir(parts[count - 1], 0o700, dir_fd=parent)
            except FileExistsError:
                pass
            finally:
                os.close(parent)
    return open_below(root, path, os.O_RDONLY | os.O_DIRECTORY, is_old_kernel=is_old_kernel)


def _openat2(root: int, path: str, flags: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("QQQ", flags, 0, BENEATH | NO_SYMLINKS | NO_MAGIC_LINKS)
    for _ in range(TRIES):
        handle = int(libc.syscall(OPENAT2, root, os.fsencode(path), how, ctypes.c_size_t(len(how))))
        if handle >= 0:
            return handle
        if ctypes.get_errno() != errno.EAGAIN:  # a rename in the same moment: ask again
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code), path)


def _walk(root: int, path: str, flags: int) -> int:
    """The same without openat2: from folder to folder, no link followed, `..` refused before."""
    parts = path.split("/")
    folder = os.dup(root)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | ALWAYS, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(parts[-1], flags, dir_fd=folder)
    except OSError as error:
        if error.errno in HARD_REFUSALS or (error.errno == errno.ENOTDIR and _has_link(folder, parts)):
            raise ToolFailed(f"{path!r} is a link, a device or outside your folders; it was not opened.") from error
        raise
    finally:
        os.close(folder)


def _has_link(folder: int, parts: list[str]) -> bool:
    """Tell whether a component in this folder is a symbolic link (O_DIRECTORY on a link says "not a directory")."""
    for part in parts:
        try:
            if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                return True
        except OSError:
            continue
    return False
