"""Makes a version a program: its code, its packages by digests, and an environment that joins them.

HOME/versions/<name>/ has `code` and `env`. Packages are shared by all versions that pin the same ones: those that
Cortex runs on now are used where they fit, else an environment below HOME/versions/packages-<digest> is made.
"""

import asyncio
import csv
import hashlib
import json
import re
import shutil
import sys
import sysconfig
import tarfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cortex.base import private, scan
from cortex.base.errors import UserError
from cortex.base.record import as_dict
from cortex.base.versions import CODE, ENVIRONMENT, FOLDER
from cortex.integrations.process import run
from cortex.integrations.upkeep.checkout import own_environment

RECORD, COMPLETE, NEW = "version.json", "complete", ".new"
LOCKS = ("requirements/run.txt", "cortex/requirements.txt")  # in a checkout, in a wheel
EXTRAS = ("requirements/{}.txt", "cortex/requirements-{}.txt")
EXTRA_NAMES = ("postgres", "semantic", "otel", "ddgs")
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)\s*(;[^\\]*)?", re.MULTILINE)
NAME = re.compile(r"(?P<name>cortex_assistant)-(?P<version>[A-Za-z0-9.!+]{1,40})-py3-none-any\.whl")
PACKAGES_S, MAKE_S = 1_800.0, 600.0
WHEEL_BYTES, WHEEL_FILES = 200_000_000, 20_000
UMASK = 0o077

Say = Callable[[str], None]


class BuiltVersion(Struct, frozen=True, kw_only=True):
    """A program below HOME/versions. checkout: where newer ones come from, "" for a wheel. packages: their folder."""

    name: str
    label: str
    commit: str = ""
    checkout: str = ""
    packages: str = ""


def record_of(home: Path, name: str) -> BuiltVersion | None:
    """Return what was written down of a version; None where it is none, or not whole."""
    try:
        return BuiltVersion(**json.loads((home / FOLDER / name / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def wheel_version(wheel: Path) -> BuiltVersion:
    """The version that a wheel holds. UserError for another file."""
    named = NAME.fullmatch(wheel.name)
    if named is None or not wheel.is_file():
        raise UserError(f"{str(wheel)!r} is not a Cortex wheel: cortex_assistant-<version>-py3-none-any.whl.")
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return BuiltVersion(name=f"{named['version']}-{digest[:12]}", label=f"{named['version']} (wheel {digest[:7]})")


async def build(home: Path, version: BuiltVersion, packed: Path, packages: Path, say: Say) -> BuiltVersion:
    """Make the version from a tar or a wheel, unless it is there; the version with its packages. UserError.

    packages: the folder of those that Cortex runs on now. What is not whole is under another name, and goes.
    """
    there = record_of(home, version.name)
    if there is not None:
        return there
    place = home / FOLDER / version.name
    new = home / FOLDER / NEW
    for left in (new, place):
        await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
    private.make_folder(new)
    try:
        say("Unpacking it")
        code = new / CODE
        await asyncio.to_thread(_unpack_wheel if packed.suffix == ".whl" else _unpack_tar, packed, code)
        await _make_assets(code, say)
        found = await _packages_for(home, _locks_of(code), packages, say)
        made = BuiltVersion(**(as_dict(version) | {"packages": str(found)}))
        await _make_environment(new, place / CODE, found)
        private.write_beside(new / RECORD, json.dumps(as_dict(made)).encode())
        await asyncio.to_thread(new.rename, place)
    finally:
        await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    return made


def remove_others(home: Path, keep: set[str]) -> None:
    """Remove versions, and packages that none of those that stay stands on."""
    folder = home / FOLDER
    stay = {name: record_of(home, name) for name in keep}
    used = {Path(one.packages) for one in stay.values() if one is not None}
    for path in folder.iterdir() if folder.is_dir() else ():
        is_used = any(one.is_relative_to(path) for one in used)
        if path.is_dir() and path.name not in keep and not is_used:
            shutil.rmtree(path, ignore_errors=True)


def running_packages() -> Path:
    """The folder of the packages that this process runs on, of an installation of its own."""
    return Path(sysconfig.get_paths()["purelib"])


def _unpack_tar(packed: Path, code: Path) -> None:
    try:
        with tarfile.open(packed) as tar:
            tar.extractall(code, filter="data")
    except tarfile.TarError as error:
        raise UserError(f"The new version's files cannot be unpacked: {error}") from error


def _unpack_wheel(packed: Path, code: Path) -> None:
    """Every file, held against the wheel's own list of digests (PyPA, "Recording installed projects")."""
    try:
        with zipfile.ZipFile(packed) as wheel:
            listed = wheel.infolist()
            if len(listed) > WHEEL_FILES or sum(one.file_size for one in listed) > WHEEL_BYTES:
                raise UserError("The wheel contains far more than Cortex.")
            record = next(one for one in wheel.namelist() if one.endswith(".dist-info/RECORD"))
            rows = csv.reader(wheel.read(record).decode().splitlines())
            told = {row[0]: row[1] for row in rows if row and row[0] != record}
            for name in wheel.namelist():
                if name != record and not name.endswith("/") and _digest(wheel.read(name)) != told.get(name):
                    raise UserError(f"The wheel is damaged: {name} is not what its list says.")
            wheel.extractall(code)  # noqa: S202 - zipfile keeps names inside; sizes and digests are checked
    except (zipfile.BadZipFile, StopIteration, UnicodeDecodeError, IndexError) as error:
        raise UserError("The wheel cannot be read, or is damaged.") from error


def _digest(data: bytes) -> str:
    return "sha256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _locks_of(code: Path) -> list[Path]:
    """The lock of the version, and those of the extras that are installed now, whole: an update takes none away."""
    found = [path for one in LOCKS if (path := code / one).is_file()]
    if not found:
        raise UserError("That version does not say which packages it needs.")
    extras = (code / one.format(name) for name in EXTRA_NAMES for one in EXTRAS)
    return [*found[:1], *(path for path in extras if path.is_file() and _is_here(path))]


def _is_here(lock: Path) -> bool:
    pins = PINNED.findall(lock.read_text(encoding="utf-8"))
    return bool(pins) and all(scan.installed_version(name) for name, _, _ in pins)


async def _make_assets(code: Path, say: Say) -> None:
    """The browser's files: those of this version where they are still current, else fetched by the new one's script."""
    ours, theirs = Path(__file__).parents[3] / "web" / "static" / "vendor", code / "web" / "static" / "vendor"
    if theirs.is_dir():  # a wheel brings them
        return
    if ours.is_dir():
        await asyncio.to_thread(shutil.copytree, ours, theirs)
    say("Making the page's files")
    await _run([sys.executable, "-B", str(code / "web" / "assets.py")], MAKE_S, "The page's files could not be made")


async def _packages_for(home: Path, locks: list[Path], packages: Path, say: Say) -> Path:
    """Where the packages are that the locks pin, installed by their digests where the ones in use are not those."""
    text = "\n".join([await asyncio.to_thread(one.read_text, encoding="utf-8") for one in locks])
    pins = PINNED.findall(text)
    if all(scan.installed_version(name) == version for name, version, marker in pins if not marker):
        return packages
    folder = home / FOLDER / f"packages-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not (folder / COMPLETE).exists():
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        say(f"Installing packages: {len(pins)}")
        failed = "The packages of that version could not be installed"
        await _run([sys.executable, "-m", "venv", str(folder)], MAKE_S, failed)
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-input",
        ]
        pinned = [word for lock in locks for word in ("-r", str(lock))]
        await _run([*pip, "--no-deps", "--require-hashes", *pinned], PACKAGES_S, failed)
        private.make_file(folder / COMPLETE)
    return next(folder.glob("lib/python*/site-packages"))


async def _make_environment(new: Path, code: Path, packages: Path) -> None:
    """An environment in which the code comes first, then the packages."""
    environment = new / ENVIRONMENT
    await _run([sys.executable, "-m", "venv", "--without-pip", str(environment)], MAKE_S, "No environment can be made")
    site = next(environment.glob("lib/python*/site-packages"))
    lines = f"{code}\nimport site; site.addsitedir({str(packages)!r})\n"
    private.write_beside(site / "cortex_version.pth", lines.encode())


async def _run(argv: list[str], timeout_s: float, failed: str) -> None:
    ended = await run(argv, cwd=Path("/"), timeout_s=timeout_s, env=own_environment(), umask=UMASK)
    if ended.code or ended.killed:
        said = (ended.killed or ended.err or ended.out).strip()[-400:]
        raise UserError(f"{failed}: {said}")
