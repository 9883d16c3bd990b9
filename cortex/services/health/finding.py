"""One check of the doctor and how it stands; what it says of the proxies, the files of this version, and plug-ins."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

from msgspec import Struct

from cortex.base import packed, scan, trust
from cortex.base.errors import CortexError, DamagedFile
from cortex.base.open_files import FEW, WANTED, OpenFiles
from cortex.base.record import as_dict
from cortex.base.settings import Settings
from cortex.base.tokens import VOCABULARY_CRC
from cortex.services.tools.plugins import Plugin

State = Literal["good", "warn", "bad", "unset"]  # unset: not set up, and nobody has to


class Finding(Struct, frozen=True, kw_only=True):
    """One check: its name, how it stands, what was seen, and what to do when that is not good."""

    name: str
    state: State
    text: str
    mend: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return as_dict(self)


def good(name: str, text: str) -> Finding:
    """A check that found what it should."""
    return Finding(name=name, state="good", text=text)


def warn(name: str, text: str, mend: str = "") -> Finding:
    """One that found what somebody should look at."""
    return Finding(name=name, state="warn", text=text, mend=mend)


def bad(name: str, text: str, mend: str = "") -> Finding:
    """One that found what keeps Cortex from working."""
    return Finding(name=name, state="bad", text=text, mend=mend)


def open_files_finding(seen: OpenFiles) -> Finding:
    """Return how many files and connections are open of those that may be; few, or nearly all, are worth a look."""
    text = f"{seen.count:,} open of at most {seen.most:,}."
    if seen.most >= FEW and seen.count < 0.8 * seen.most:
        return good("open files", text)
    return warn("open files", text, f"Allow the process {WANTED:,} (ulimit -Hn, LimitNOFILE) and restart it.")


def backup_advice(settings: Settings) -> Iterator[str]:
    """Yield what would make backups safer, none of which is wrong as it is."""
    if not settings.backup_to:
        yield "They are on this machine only: Settings, Place, names another disk or s3://bucket."
    if not settings.backup_passphrase:
        yield "They are not encrypted: Settings, Passphrase."
    if settings.key_file.is_file():
        yield f"None contains {settings.key_file.name}: keep a copy elsewhere, without it stored keys cannot be read."


OUTGOING = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


async def proxy_finding(public_url: str) -> Finding:
    """Return what a proxy does to requests and answers; asks the public address over the network."""
    if not public_url:
        return good("proxy", "No public address is set, so there is no proxy.")
    try:
        faults = await scan.load("cortex.integrations.proxy").faults(public_url)
    except (OSError, CortexError) as error:
        return warn(
            "proxy",
            f"{public_url} does not answer this machine: {error}.",
            "Open it on a phone: where the page opens there, it works, and only this machine cannot ask it.",
        )
    if faults:
        mend = "docs/proxies.md has settings for nginx and Caddy that work."
        return bad("proxy", f"At {public_url}: {' '.join(faults)}", mend)
    return good("proxy", f"{public_url} passes requests and answers on as they are.")


def outgoing_findings(environ: Mapping[str, str]) -> list[Finding]:
    """Return what keeps it from other servers: a proxy that Cortex does not use, authorities that it cannot."""
    found = []
    if untrusted := trust.unusable(environ):
        mend = "Install ca-certificates, and let SSL_CERT_FILE name a file of them in PEM, or nothing."
        found.append(bad("certificates", untrusted, mend))
    named = [name for name in OUTGOING if environ.get(name) or environ.get(name.lower())]
    if not named:
        return found
    return [
        *found,
        warn(
            "outgoing proxy",
            f"{', '.join(named)} is set. Cortex ignores it: it checks every address as it connects, by itself.",
            "Where only a proxy reaches the internet, run a model gateway beside it: docs/proxies.md.",
        ),
    ]


PACKAGE = Path(__file__).resolve().parents[2]
BUNDLE = PACKAGE.parent / "web" / "static" / "vendor" / "bundle.js"
# What is left without one of these; without any other no message can be answered.
SPARED = {
    "selection/index/shipped_index.bin": "Tools are read anew at each start; facts and how-tos are found less well.",
    "selection/model/lacks_tool.bin": "An answer that cannot help gets no second try.",
}


def program_files(package: Path = PACKAGE) -> Finding:
    """Tell whether the tables in the package's folder are whole."""
    damaged = sorted(name for name, look in _looks().items() if not _is_whole(package / name, look))
    if not damaged:
        return good("program", "The files of this version are complete.")
    means = dict.fromkeys(SPARED.get(name, "No message can be answered.") for name in damaged)
    text = f"Damaged or missing: {', '.join(str(package / name) for name in damaged)}. {' '.join(means)}"
    return bad("program", text, "Install this version of Cortex again and restart it.")


def page() -> Finding:
    """Tell whether the browser's script library is there."""
    if BUNDLE.is_file():
        return good("page", "The browser's files exist.")
    return bad("page", "The browser's script library is missing.", "Run `make assets`.")


def _looks() -> Mapping[str, Callable[[Path], object]]:
    """Return how each table is read, by its place in the package."""
    names = ("model/weights", "index/shipped_index", "words/meanings")
    return {f"selection/{name}.bin": packed.mapped for name in names} | {
        "selection/model/lacks_tool.bin": lambda path: scan.load("cortex.selection.model.lacks_tool").read(
            path.read_bytes()
        ),
        "base/o200k.bin": _vocabulary,
    }


def _is_whole(path: Path, look: Callable[[Path], object]) -> bool:
    try:
        look(path)
    except (DamagedFile, OSError, ValueError):
        return False
    return True


def _vocabulary(path: Path) -> None:
    if crc32(path.read_bytes()) != VOCABULARY_CRC:
        raise ValueError("its checksum is wrong")


def plugin_findings(plugins: Sequence[Plugin]) -> list[Finding]:
    """Tell of each plug-in that was allowed whether it is in use, and why not; () without any."""
    return [
        Finding(
            name=f"plug-in {one.name}",
            state="good" if one.state == "allowed" else "warn",
            text=_standing(one),
            mend="" if one.state == "allowed" else "Look at it under Admin, Plug-ins.",
        )
        for one in plugins
        if one.row is not None
    ]


def _standing(plugin: Plugin) -> str:
    version, was = plugin.package.version if plugin.package else "", plugin.allowed_version
    match plugin.state:
        case "changed":
            return f"It is not loaded: its files are version {version} now and not what was allowed ({was})."
        case "waiting":
            return f"Version {version} is allowed. It is loaded when Cortex restarts."
        case "gone":
            return f"Version {was} was allowed and is not installed any more."
        case "unfit":
            return f"It is not loaded. {plugin.package.unfit if plugin.package else ''}"
        case "failed":
            return f"Not all of it can be used. {' '.join(plugin.faults)}"
    return f"Version {version} is allowed."
