"""Python packages that bring tools or channels, as they are installed: what they say of themselves, and a digest.

Reads metadata and files; imports none of them. Called by `services/tools/plugins.py`, off the event loop.
"""

import base64
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path, PurePath

from msgspec import Struct

from cortex.base import scan

TOOLS, CHANNELS = "cortex.tools", "cortex.channels"
SAYS_CHARACTERS = 300
DESCRIBED_BY = ("METADATA", "entry_points.txt")  # of the folder of metadata; the rest of it depends on the installer
EDITABLE = "It is installed in editable mode, so its code can change at any moment. Install it without -e."
UNRECORDED = "It was installed without a list of its files (RECORD). Install it with pip or uv."
AN_OBJECT = "The entry point {name} names an object. Name the module alone: {module}."
OURS = "The entry point {name} names a module of Cortex itself."
ELSEWHERE = "The entry point {name} names {module}, which is no file of this package."
OVERWRITES = "It brings a file of Cortex itself: {file}. Install Cortex again."
AT_EACH_START = "Python runs a file of it at each start, allowed or not: {file}. Remove the package."
TOO_LARGE = "It is larger than 250 MB, so its files are not looked at."
LINKED = "Its folder {file} is a link to another place. Install the package again."
SIZE_MAX = 250_000_000
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
_RUN_BY_PYTHON = ("sitecustomize.py", "usercustomize.py")
log = logging.getLogger(__name__)


class PluginPackage(Struct, frozen=True, kw_only=True):
    """An installed package with entry points in `cortex.tools` or `cortex.channels`.

    `modules`: group, name and dotted module of each. `digest`: of its real files, their names among them; compiled ones
    (`__pycache__`) and what it depends on left out. `altered`: files that are gone, or other than the installer
    recorded. `unfit`: why it cannot be allowed, "" = it can.
    """

    name: str
    version: str
    summary: str
    author: str
    licence: str
    modules: tuple[tuple[str, str, str], ...]
    digest: str
    altered: tuple[str, ...] = ()
    unfit: str = ""


def installed() -> list[PluginPackage]:
    """All of them by name, as they stand now, but for one whose metadata is damaged. Reads every file of each."""
    found = []
    for package, points in scan.bringing(TOOLS, CHANNELS):
        one, error = scan.caught(partial(_package, package, points))
        if one is None:
            log.warning("plug-in: the metadata of one cannot be read: %s", scan.in_words(error))
        else:
            found.append(one)
    return sorted(found, key=lambda one: one.name)


def _package(package: scan.Distribution, points: tuple[scan.EntryPoint, ...]) -> PluginPackage:
    about = package.metadata
    name = scan.package_name(package)
    if not NAME.fullmatch(name):
        raise ValueError(f"{name[:100]!r} is no name of a package")
    places = [_place(package, file) for file in package.files or ()]
    is_large = sum(place.stat().st_size for place in places if place.is_file()) > SIZE_MAX
    unfit = TOO_LARGE if is_large else _unfit(package, points)
    whole, altered, linked = ("", (), "") if is_large else _digest(package)
    return PluginPackage(
        name=name,
        version=_says([package.version or ""]),
        summary=_says(about.get_all("Summary")),
        author=_says([*(about.get_all("Author") or ()), *(about.get_all("Author-email") or ())]),
        licence=_says([*(about.get_all("License-Expression") or ()), *(about.get_all("License") or ())]),
        modules=tuple(sorted({(point.group, point.name, point.module) for point in points})),
        digest=whole,
        altered=altered,
        unfit=unfit or linked,
    )


def _says(values: Iterable[str] | None) -> str:
    """The first line of what its metadata says."""
    lines = next((value.strip().splitlines() for value in values or () if value.strip()), [""])
    return lines[0][:SAYS_CHARACTERS]


def _unfit(package: scan.Distribution, points: tuple[scan.EntryPoint, ...]) -> str:
    try:
        direct = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        direct = {}
    if isinstance(direct, dict) and (direct.get("dir_info") or {}).get("editable"):
        return EDITABLE
    if not package.files or package.read_text("RECORD") is None:
        return UNRECORDED
    return _unfit_files(package) or _unfit_points(package, points)


def _unfit_files(package: scan.Distribution) -> str:
    for file in package.files or ():
        if file.parts[:1] in (("cortex",), ("web",)):
            return OVERWRITES.format(file=file.as_posix())
        if len(file.parts) == 1 and (file.suffix == ".pth" or file.name in _RUN_BY_PYTHON):
            return AT_EACH_START.format(file=file.as_posix())
    return ""


def _unfit_points(package: scan.Distribution, points: tuple[scan.EntryPoint, ...]) -> str:
    ours = [_place(package, file) for file in package.files or ()]
    for point in points:
        if point.attr:
            return AN_OBJECT.format(name=point.name, module=point.module)
        if point.module.partition(".")[0] in ("cortex", "web"):
            return OURS.format(name=point.name)
        files = {place.resolve() for place in scan.files_of(point.module)}
        names = {place.name for place in files}
        if not files or not files <= {place.resolve() for place in ours if place.name in names}:
            return ELSEWHERE.format(name=point.name, module=point.module)
    return ""


def _digest(package: scan.Distribution) -> tuple[str, tuple[str, ...], str]:
    """The digest, the files that are other than recorded, and what is wrong where a folder leads elsewhere."""
    parts: dict[str, str] = {}
    altered = []
    folders: dict[Path, str] = {}
    for file in package.files or ():
        place, name = _place(package, file), file.as_posix()
        is_metadata = "".join(file.parts[:1]).endswith((".dist-info", ".egg-info"))
        is_left_by_an_import = _is_compiled(file) and not file.hash
        if is_left_by_an_import or (is_metadata and file.name not in DESCRIBED_BY):
            continue
        content = _content(place)
        parts[name] = hashlib.sha256(content).hexdigest() if content is not None else "gone"
        if content is None or (file.hash and file.hash.value != _as_recorded(file.hash.mode, content)):
            altered.append(name)
        if not is_metadata and len(file.parts) > 1 and ".." not in file.parts:
            folders[place.parent] = file.parent.as_posix()
        elif len(file.parts) == 1 and file.suffix == ".py":
            folders[place.with_suffix("")] = file.stem  # a folder of this name is imported in its place
    linked = ""
    for name, place in _unrecorded(folders, parts):
        linked = linked or (LINKED.format(file=name) if place.is_symlink() and place.is_dir() else "")
        content = _content(place)
        if content is not None:
            parts[name] = hashlib.sha256(content).hexdigest()
            altered.append(name)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest(), tuple(sorted(altered)), linked


def _unrecorded(folders: dict[Path, str], recorded: dict[str, str]) -> Iterator[tuple[str, Path]]:
    """Files that somebody put among those of the package, also in folders of their own: they can be imported as well.

    A package `moon/` is even imported in place of the module `moon.py` beside it.
    """
    seen = set(recorded)
    for folder, inside in folders.items():
        for place in sorted(folder.rglob("*")) if folder.is_dir() else ():
            name = f"{inside}/{place.relative_to(folder).as_posix()}"
            if name not in seen and not _is_compiled(place):
                seen.add(name)
                yield name, place


def _is_compiled(place: PurePath) -> bool:
    """Tell whether an import of a source left it; a `.pyc` elsewhere is imported by itself."""
    return place.suffix == ".pyc" and place.parent.name == "__pycache__"


def _place(package: scan.Distribution, file: PurePath) -> Path:
    return Path(str(package.locate_file(str(file))))


def _content(place: Path) -> bytes | None:
    """The bytes of a plain file: a device or a pipe that a package lists would never end."""
    try:
        return place.read_bytes() if place.is_file() else None
    except OSError:
        return None


def _as_recorded(mode: str, content: bytes) -> str:
    """The hash as RECORD writes it; "" for a way to hash that is not at hand."""
    if mode not in hashlib.algorithms_guaranteed or mode.startswith("shake"):
        return ""
    return base64.urlsafe_b64encode(hashlib.new(mode, content, usedforsecurity=False).digest()).rstrip(b"=").decode()
