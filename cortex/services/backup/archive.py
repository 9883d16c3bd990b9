"""One backup as one file: a compressed tar, encrypted where there is a passphrase.

In this order: `manifest.json`, `database/*`, `home/*`, `sums.json` with size and SHA-256 of each, `signature`; a file
without the last two is not whole, but those of format 1 had no signature. Reading trusts nothing: names, kinds, counts
and sizes are checked before a byte is written. All of this blocks: callers use a thread.
"""

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from msgspec import Struct

from cortex.base import private, scan
from cortex.base.errors import UserError
from cortex.base.record import as_dict
from cortex.services.backup.signature import FileList, Record, sign

FORMAT, UNSIGNED_FORMAT = 2, 1
MANIFEST, SUMS, SIGNATURE, DATABASE, HOME = "manifest.json", "sums.json", "signature", "database/", "home/"
SIGNATURE_BYTES = 1_000
PIECE_BYTES = 1 << 16  # the most that is read at once: headers say of themselves how long they are
PATH_CHARACTERS = 4_096
MOST_LINKS = 100_000
LOOK_BYTES = 16 << 20  # written between two looks at the room on the disk
ROOM_BYTES = 200_000_000  # left to the server
MOST_MEMBERS = 5_000_000
MOST_RATIO = 300  # unpacked to packed; past it, and past SMALL_BYTES, it is a bomb
SMALL_BYTES = 256 << 20
# Of the running daemon, made anew or backed up in another way; the key is kept apart from what it opens.
LEFT_OUT = (
    "coding", "programs", "mcp-programs", "versions", "secret.key", "serve.lock", "backups", "replaced-home",
    ".restore", "lost+found", "restored.json",
)  # fmt: skip
LEFT_OUT_BEGINNINGS = ("cortex.db", "engine.db", "cortex.db-", "engine.db-", ".backup-")
FAULTS = (
    *(tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError),
    *(LookupError, TypeError, AttributeError, RecursionError, OverflowError),
)


class Manifest(Struct, frozen=True, kw_only=True):
    """Facts of a backup. `databases`: their names in it; `key`: by which secret key, without telling it."""

    made_at: str
    version: str
    revision: str
    kind: str
    databases: tuple[str, ...]
    key: str
    format: int = FORMAT


class Backup(Struct, frozen=True, kw_only=True):
    """A backup as it was read: its manifest, the digest of all that it holds, and its signature, "" for none."""

    manifest: Manifest
    digest: str
    signature: str


def is_left_out(name: str) -> bool:
    """Tell whether an entry of HOME with this name is no part of a backup."""
    return name in LEFT_OUT or name.startswith(LEFT_OUT_BEGINNINGS)


def is_database(name: str) -> bool:
    """Tell whether a member is one of the databases."""
    return name.startswith(DATABASE)


def write(
    path: Path,
    manifest: Manifest,
    databases: Mapping[str, Path],
    home: Path,
    passphrase: str,
    secret_key: str,
    earlier: Mapping[str, bytes] | None = None,
    apart: Iterable[Path] = (),
) -> None:
    """Write a new file, readable by its owner alone, and have the disk keep it. OSError as writing raises it.

    `earlier`: files at the top of HOME whose content of before the databases were copied counts. `apart`: open
    databases, wherever they are; to read one here would drop the locks that SQLite holds on it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private.FILE)
    record = Record()
    with os.fdopen(handle, "wb") as file:
        with ExitStack() as stack:
            sealed = cast("IO[bytes]", _WithRoom(file))
            if passphrase:
                sealed = stack.enter_context(
                    scan.load("cortex.services.backup.envelope").SealingWriter(sealed, passphrase)
                )
            packed = stack.enter_context(gzip.GzipFile(fileobj=sealed, mode="wb", compresslevel=6, mtime=0))
            tar = stack.enter_context(tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT))
            _add_bytes(tar, MANIFEST, json.dumps(as_dict(manifest)).encode(), record)
            for name, source in databases.items():
                with source.open("rb") as opened:
                    _add(tar, DATABASE + name, opened, source.stat().st_size, private.FILE, record)
            for name, data in (earlier or {}).items():
                _add_bytes(tar, HOME + name, data, record)
            inside = tuple(f"{HOME}{path.relative_to(home)}" for path in apart if path.is_relative_to(home))
            _add_home(tar, home, record, inside)
            _add_bytes(tar, SUMS, json.dumps(record.sums).encode(), record)
            _add_bytes(tar, SIGNATURE, sign(secret_key, record.digest).encode(), Record())
        file.flush()
        os.fsync(file.fileno())


def read(
    path: Path, passphrase: str, *, into: Path | None = None, keeps: Callable[[str], bool] = lambda _: True
) -> Backup:
    """Read all of it, and write the members that `keeps` wants below the folder `into`, which exists and is empty.

    UserError, with what is wrong, for a file that is no backup, cut, changed, hostile or of a newer Cortex, and for a
    wrong passphrase; what was written until then stays. Whether its signature is right is for the caller to ask.
    """
    try:
        with _opened(path, passphrase) as tar:
            reading = _Reading(into, keeps)
            for count, member in enumerate(tar):
                if count > MOST_MEMBERS or tar.pax_headers:  # those of all members add up, and no backup has any
                    raise ValueError("far too many members, or headers for all")
                reading.take(tar, member)
                tar.members.clear()  # type: ignore[attr-defined]  # else tarfile keeps what it knows of each
            while tar.fileobj is not None and (rest := tar.fileobj.read(PIECE_BYTES)):
                if rest.strip(b"\0"):  # up to the marks of the true end: gzip's sum, the envelope's last piece
                    raise ValueError("something behind the end")
            return reading.end()
    except FAULTS as error:
        raise UserError("This is not a Cortex backup, or it is incomplete or damaged.") from error


class _Reading:
    """The part met so far of a file that is read from its beginning to its end."""

    def __init__(self, into: Path | None, keeps: Callable[[str], bool]) -> None:
        self._into, self._keeps = into, keeps
        self._record, self._signature = Record(), ""
        self._list = FileList()
        self._is_whole: bool | None = None
        self._links: dict[str, str] = {}
        self._manifest: Manifest | None = None

    def take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """The next member."""
        if self._signature or (self._manifest is None) != (member.name == MANIFEST):
            raise ValueError("a member where none may be")
        if (self._is_whole is not None) != (member.name == SIGNATURE):
            raise ValueError("a member behind the sums, or a signature ahead of them")
        if member.name == MANIFEST:
            data = _content(tar, member).read(PIECE_BYTES)
            self._record.add(member, hashlib.sha256(data).hexdigest())
            self._manifest = _manifest(json.loads(data))
        elif member.name == SUMS:
            digest = hashlib.sha256()
            self._is_whole = self._list.is_same(_hashed(_pieces(_content(tar, member)), digest))
            self._record.add(member, digest.hexdigest())
        elif member.name == SIGNATURE:
            self._signature = _content(tar, member).read(SIGNATURE_BYTES).decode("ascii")
        else:
            self._write(tar, member, _safe(member))

    def _write(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if not self._links.keys().isdisjoint([name, *map(str, PurePosixPath(name).parents)]):
            raise ValueError("a member behind a link, or twice")
        target = self._into / name if self._into is not None and self._keeps(name) else None
        if member.isreg():
            is_program = bool(member.mode & stat.S_IXUSR)
            size_bytes, sha256 = _copy(_content(tar, member), target, is_program=is_program)
            self._list.add(name, size_bytes, sha256)
            self._record.add(member, sha256)
            return
        self._record.add(member)
        if member.issym():
            self._list.add(name, 0, member.linkname)
            self._links[name] = member.linkname
            if len(self._links) > MOST_LINKS:
                raise ValueError("far too many links")
        elif target is not None:
            private.make_folder(target)

    def end(self) -> Backup:
        """All is read: it has to be what the backup says it holds. Links come last: nothing is written through one."""
        if self._manifest is None or not self._is_whole:
            raise ValueError("not all of it is there")
        if bool(self._signature) != (self._manifest.format != UNSIGNED_FORMAT):
            raise ValueError("a signature that is missing, or in a format that has none")
        for name, goal in self._links.items():
            if self._into is not None and self._keeps(name):
                private.make_folder((self._into / name).parent)
                (self._into / name).symlink_to(goal)
        return Backup(manifest=self._manifest, digest=self._record.digest, signature=self._signature)


def _manifest(value: dict[str, object]) -> Manifest:
    if value.get("format") not in (UNSIGNED_FORMAT, FORMAT):
        raise UserError(
            f"The backup has format {value.get('format')!r}, and this Cortex reads {FORMAT} and earlier: update it."
        )
    found = Manifest(**{**value, "databases": tuple(cast("list[str]", value["databases"]))})  # type: ignore[arg-type]
    if not all(isinstance(one, str) for one in (found.made_at, found.version, found.revision, found.kind, found.key)):
        raise ValueError("facts that are no texts")
    return found


def _safe(member: tarfile.TarInfo) -> str:
    """The member's name once it is certain that it leads below our folder and is of a kind that we write."""
    top, _, rest = member.name[: PATH_CHARACTERS + 1].partition("/")
    parts = rest.split("/")
    is_file = member.isreg() and not member.issparse()  # a hole is written in full, and no byte of it was read
    is_plain = is_file or member.isdir() or (member.issym() and top == "home")
    if len(member.name) > PATH_CHARACTERS or len(member.linkname) > PATH_CHARACTERS:
        raise ValueError("a name that no file has")
    if member.size < 0:  # tarfile goes back by it, and meets the same member again without end
        raise ValueError("a member of less than nothing")
    if top not in ("database", "home") or not is_plain or any(part in ("", ".", "..") for part in parts):
        raise ValueError("a member that leads elsewhere")
    if "\0" in member.name or (top == "database" and len(parts) > 1) or (top == "home" and is_left_out(parts[0])):
        raise ValueError("a member that no backup has")
    return member.name


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = tar.extractfile(member) if member.isreg() else None
    if found is None:
        raise ValueError("no ordinary file")
    return found


def _copy(source: IO[bytes], target: Path | None, *, is_program: bool) -> tuple[int, str]:
    """Size and SHA-256 of the content, written to a new file where there is a target."""
    with ExitStack() as stack:
        file = None
        if target is not None:
            private.make_folder(target.parent)
            mode = private.PROGRAM if is_program else private.FILE
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = stack.enter_context(os.fdopen(os.open(target, flags, mode), "wb"))
        size_bytes, digest = 0, hashlib.sha256()
        for piece in _pieces(source):
            size_bytes += len(piece)
            digest.update(piece)
            if file is not None:
                file.write(piece)
        if file is not None:
            file.flush()
            os.fsync(file.fileno())
    return size_bytes, digest.hexdigest()


def _hashed(pieces: Iterable[bytes], digest: "hashlib._Hash") -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(PIECE_BYTES):
        yield piece


@contextmanager
def _opened(path: Path, passphrase: str) -> Iterator[tarfile.TarFile]:
    envelope = scan.load("cortex.services.backup.envelope")
    with ExitStack() as stack:
        file: BinaryIO = stack.enter_context(path.open("rb"))
        if envelope.is_sealed(path):
            if not passphrase:
                raise UserError(
                    "The backup is encrypted: enter its passphrase in the field on the set-up page, or let the command "
                    "read it by --passphrase-stdin.",
                    field="passphrase",
                )
            file = stack.enter_context(io.BufferedReader(envelope.OpeningReader(file, passphrase)))
        packed = stack.enter_context(gzip.GzipFile(fileobj=file, mode="rb"))
        bounded = _Bounded(packed, max(SMALL_BYTES, MOST_RATIO * path.stat().st_size))
        yield stack.enter_context(tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r:"))


class _Bounded:
    """The unpacked stream, which ends with an error where a bomb would go on: too much in all, or at one time."""

    def __init__(self, packed: gzip.GzipFile, most_bytes: int) -> None:
        self._packed, self._most_bytes = packed, most_bytes

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > PIECE_BYTES:
            raise ValueError("a member header of absurd size")
        data = self._packed.read(size)
        self.seek(0, os.SEEK_CUR)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if (offset if whence == os.SEEK_SET else self._packed.tell() + offset) > self._most_bytes:
            raise UserError(
                "The file unpacks to far more than a backup of this size can contain. Nothing was restored."
            )
        return self._packed.seek(offset, whence)

    def tell(self) -> int:
        return self._packed.tell()


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes, record: Record) -> None:
    _add(tar, name, io.BytesIO(data), len(data), private.FILE, record)


def _add(tar: tarfile.TarFile, name: str, source: IO[bytes], size_bytes: int, mode: int, record: Record) -> None:
    """Add so many bytes of the source, which may grow or shrink meanwhile."""
    member, held = tarfile.TarInfo(name), _Held(source, size_bytes)
    member.size, member.mode = size_bytes, mode
    tar.addfile(member, cast("IO[bytes]", held))
    sha256 = held.digest.hexdigest()
    record.add(member, sha256)
    if name not in (MANIFEST, SUMS, SIGNATURE):
        record.sums[name] = (size_bytes, sha256)


class _Held:
    """A source held to its size of the beginning: what is cut off meanwhile is read as zeros."""

    def __init__(self, source: IO[bytes], size_bytes: int) -> None:
        self._source, self._left_bytes, self.digest = source, size_bytes, hashlib.sha256()

    def read(self, size: int) -> bytes:
        size = min(size, self._left_bytes)
        data = self._source.read(size).ljust(size, b"\0")
        self._left_bytes -= size
        self.digest.update(data)
        return data


class _WithRoom:
    """A file that is written for as long as its disk keeps room for the server itself."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._unseen_bytes = file, 0

    def write(self, data: bytes) -> int:
        self._unseen_bytes += len(data)
        if self._unseen_bytes >= LOOK_BYTES:
            self._unseen_bytes = 0
            refuse_full(os.fstatvfs(self._file.fileno()), ROOM_BYTES)
        return self._file.write(data)


def refuse_full(disk: os.statvfs_result, needed_bytes: int) -> None:
    """UserError where the disk has less room than is needed."""
    free_bytes = disk.f_bavail * disk.f_frsize
    if free_bytes < needed_bytes:
        raise UserError(f"The disk has {free_bytes // 10**6:,} MB free; a backup needs {needed_bytes // 10**6:,} MB.")


def _add_home(tar: tarfile.TarFile, home: Path, record: Record, apart: tuple[str, ...]) -> None:
    """Every file, folder and link below HOME; what vanishes meanwhile is not in the backup, devices and pipes never."""
    for folder, folders, files, handle in os.fwalk(home, follow_symlinks=False):
        shown = os.path.relpath(folder, home)
        if shown == ".":
            folders[:] = [name for name in folders if not is_left_out(name)]
            files = [name for name in files if not is_left_out(name)]
        for name in sorted([*folders, *files]):
            inside = HOME + (name if shown == "." else f"{shown}/{name}")
            if inside in record.sums or inside.startswith(apart):
                continue  # as it was earlier, or a database and what SQLite keeps beside it
            with suppress(FileNotFoundError):
                _add_entry(tar, inside, name, handle, record)
        folders.sort()


def _add_entry(tar: tarfile.TarFile, inside: str, name: str, within: int, record: Record) -> None:
    about = os.stat(name, dir_fd=within, follow_symlinks=False)
    member = tarfile.TarInfo(inside)
    if stat.S_ISDIR(about.st_mode):
        member.type, member.mode = tarfile.DIRTYPE, private.FOLDER
        tar.addfile(member)
        record.add(member)
    elif stat.S_ISLNK(about.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=within)
        tar.addfile(member)
        record.add(member)
        record.sums[inside] = (0, member.linkname)
    elif stat.S_ISREG(about.st_mode):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=within)
        with os.fdopen(handle, "rb") as file:
            _add(tar, inside, file, os.fstat(handle).st_size, about.st_mode & private.PROGRAM, record)
