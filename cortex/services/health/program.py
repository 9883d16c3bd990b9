"""What the doctor says of the files that came with this version: without them no message or no page can be answered.

Called by `doctor.py`, off the event loop. Changes nothing.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from zlib import crc32

from cortex.base import scan
from cortex.base.errors import DamagedFile
from cortex.base.tokens import VOCABULARY_CRC
from cortex.services.health.finding import Finding

PACKAGE = Path(__file__).resolve().parents[2]
BUNDLE = PACKAGE.parent / "web" / "static" / "vendor" / "bundle.js"
# What is left without one of these; without any other no message can be answered.
SPARED = {
    "selection/index/shipped_index.bin": (
        "Tools are read anew at each start, and facts and how-tos are found less well."
    ),
    "selection/model/lacks_tool.bin": "An answer that cannot help gets no second try.",
}


def program_files(package: Path = PACKAGE) -> Finding:
    """Tell whether the tables in the package's folder are whole."""
    bad = sorted(name for name, look in _looks().items() if not _is_whole(package / name, look))
    if not bad:
        return Finding(name="program", state="good", text="The files of this version are complete.")
    means = dict.fromkeys(SPARED.get(name, "No message can be answered.") for name in bad)
    text = f"Damaged or missing: {', '.join(str(package / name) for name in bad)}. {' '.join(means)}"
    return Finding(name="program", state="bad", text=text, mend="Install this version of Cortex again and restart it.")


def page() -> Finding:
    """Tell whether the browser's script library is there."""
    if BUNDLE.is_file():
        return Finding(name="page", state="good", text="The browser's files exist.")
    return Finding(name="page", state="bad", text="The browser's script library is missing.", mend="Run `make assets`.")


def _looks() -> Mapping[str, Callable[[Path], object]]:
    """How each table is read, by its place in the package."""
    arrays = scan.load("cortex.base.packed").mapped
    names = ("model/weights", "index/shipped_index", "words/meanings")
    return {f"selection/{name}.bin": arrays for name in names} | {
        "selection/model/lacks_tool.bin": _refusal_line,
        "base/o200k.bin": _vocabulary,
    }


def _is_whole(path: Path, look: Callable[[Path], object]) -> bool:
    try:
        look(path)
    except (DamagedFile, OSError, ValueError):
        return False
    return True


def _refusal_line(path: Path) -> None:
    scan.load("cortex.selection.model.lacks_tool").read(path.read_bytes())


def _vocabulary(path: Path) -> None:
    if crc32(path.read_bytes()) != VOCABULARY_CRC:
        raise ValueError("its checksum is wrong")
