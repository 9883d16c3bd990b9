"""What the sandbox has to give a program so that it starts: proposed from its command line, for an admin to tick.

Exact paths, never more: nothing of Cortex's own, no home folder as a whole, nothing that holds keys. Reads the disk.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.hidden import show_hidden
from cortex.integrations.mcp.host import Launch, Machine, in_system, launch_of, script_needs, text_of
from cortex.integrations.mcp.packages import DOCKER, Installed, McpPackage, installer_of, package_of

SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".sh", ".jar", ".php")
DATA = (".db", ".sqlite", ".sqlite3", ".duckdb", ".jsonl")  # written, with more files beside them
CONTAINERS = ("docker", "podman", "nerdctl")
NEEDS_MOST = 20
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
CHOOSES = ("--executable-path", "--browser", "--cdp-endpoint", "--config", "--extension")
_NETWORKED = re.compile(
    r"fetch|search|duckduckgo|context7|notion|git(?:hub|lab)|slack|brave|tavily|exa\b|playwright|puppeteer|browser|web|http"
    r"|api|google|firecrawl|jira|confluence|atlassian|linear|sentry|stripe|weather|maps|aws|azure|cloud|mail|remote|telegram"
    r"|discord|spotify|youtube|wiki|arxiv|home-?assistant",
    re.IGNORECASE,
)
_ONLINE = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|URL|HOST|ENDPOINT|SERVER|PROXY", re.IGNORECASE)
_CLIENTS = re.compile(
    r"^Requires-Dist: (?:httpx2?|requests|aiohttp|urllib3|websockets|ddgs|duckduckgo|playwright)\b"
    r"|\"(?:axios|node-fetch|undici|got|ws|playwright(?:-core)?|puppeteer(?:-core)?|openid-client)\":",
    re.MULTILINE | re.IGNORECASE,
)


class HostNeed(Struct, frozen=True, kw_only=True):
    """A folder or file. `is_ticked`: proposed; `may_change`: it can also be given for changing, `is_changed`: is so."""

    path: str
    why: str
    is_ticked: bool = True
    may_change: bool = False
    is_changed: bool = False


class Plan(Struct, frozen=True, kw_only=True):
    """The way a command would run. `argv`: by names that hold in the sandbox; `needs`: what it lacks of folders.

    network: why it seems to need it, "" = it does not seem so. package: to be installed first. is_package: the command
    is a line that names one, installed or not. hidden: the file that cannot be seen as things are, "" = none. problem:
    why it cannot run at all, in words. added: arguments without which it would not work here.
    """

    argv: tuple[str, ...]
    needs: tuple[HostNeed, ...] = ()
    network: str = ""
    package: McpPackage | None = None
    is_package: bool = False
    hidden: str = ""
    problem: str = ""
    added: tuple[str, ...] = ()


def plan_of(
    argv: Sequence[str],
    variables: Mapping[str, str],
    granted: Iterable[Path],
    machine: Machine,
    installed: Mapping[str, Installed],
) -> Plan:
    """Return what a command needs besides `granted`. `installed`: packages that are here, by their key."""
    name, given = Path(argv[0]).name, tuple(granted)
    if name in CONTAINERS:
        return Plan(argv=tuple(argv), problem=DOCKER)
    try:
        package = package_of(argv)
        here = installed.get(package.key) if package else None
        if package is not None and here is None:
            added = _browser(argv, machine)
            needs = [*_of_installer(package, machine), *_needs_of_arguments((*package.arguments, *added), machine)]
            return Plan(
                argv=tuple(argv),
                package=package,
                is_package=True,
                network=_network(argv, variables, None),
                needs=_lacking([*needs, *_data(package.arguments, variables, machine)], given, machine),
                added=added,
            )
    except UserError as error:
        return Plan(argv=tuple(argv), problem=error.message)
    given = (*given, *(one.resolve() for one in given))
    own = (*here.argv, *package.arguments) if package and here else _in_project(argv)
    return replace(_of_program(own, variables, given, machine, argv), is_package=package is not None)


def _of_program(
    argv: Sequence[str], variables: Mapping[str, str], given: Sequence[Path], machine: Machine, asked: Sequence[str]
) -> Plan:
    program = machine.find(argv[0])
    if program is None:
        where = "" if "/" in argv[0] else " It was looked for where your own programs are, too: enter its whole path."
        return Plan(argv=tuple(argv), problem=f"There is no program {show_hidden(argv[0])!r} on this machine.{where}")
    if program.resolve().name == "snap":
        return Plan(
            argv=tuple(argv),
            problem=f"{argv[0]} is a snap, and snaps do not run inside a sandbox. Install it another way.",
        )
    launch = launch_of(program, machine)
    scripts = [Path(one) for one in argv[1:] if one.startswith("/") and one.endswith(SCRIPTS) and os.path.isfile(one)]
    launches = [launch, *(script_needs(one, machine) for one in scripts[:1] if not in_system(one))]
    needs = [HostNeed(path=str(one), why="The program is in it.") for part in launches for one in part.needs]
    rest = [one for one in argv[1:] if Path(one) not in scripts]
    added = _browser(argv, machine)
    needs += _needs_of_arguments((*rest, *added), machine)
    files = [one for part in launches for one in part.files]
    hidden = next((str(one) for one in files if not _is_seen(one, given)), "")
    return Plan(
        argv=(*_started_as(argv[0], launch, given), *argv[1:]),
        needs=_lacking([*needs, *_data(rest, variables, machine)], given, machine),
        network=_network(asked, variables, next((part.package for part in launches[::-1] if part.package), None)),
        hidden=hidden,
        added=added,
    )


def named_in(text: str, granted: Sequence[Path], machine: Machine) -> tuple[HostNeed, ...]:
    """Files that a program missed by its own words and that are there; they are proposed, not ticked."""
    found = [Path(one) for one in re.findall(r"(/[\w@.+-]+(?:/[\w@.+-]+)*)", text)]
    there = [one for one in dict.fromkeys(found) if len(one.parts) > 2 and os.path.exists(one)]
    needs = [HostNeed(path=str(one), why="The program says that it misses it.", is_ticked=False) for one in there]
    return _lacking(needs, granted, machine)


def _started_as(name: str, launch: Launch, given: Sequence[Path]) -> tuple[str, ...]:
    """The beginning of the command: as it was typed where the sandbox finds it so, else by whole paths."""
    has_system_start = in_system(Path(launch.argv[0]))
    if "/" not in name and len(launch.argv) == 1 and has_system_start:
        return (name,)
    if "/" in name and not in_system(Path(name)) and _is_seen(Path(name), given):  # perhaps by a link that is given
        return (name,) if len(launch.argv) == 1 or has_system_start else (*launch.argv[:-1], name)
    return launch.argv


def _in_project(argv: Sequence[str]) -> Sequence[str]:
    """`uv run` in a folder that has an environment: the program of that environment."""
    words = list(argv[1:])
    if Path(argv[0]).name != "uv" or "run" not in words:
        return argv
    folder = next((words[at + 1] for at, one in enumerate(words[:-1]) if one in ("--directory", "--project")), "")
    rest = words[words.index("run") + 1 :]
    programs = Path(folder, ".venv", "bin")
    if not folder.startswith("/") or not rest or not os.path.isdir(programs):
        return argv
    if rest[0].endswith(".py"):
        return [str(programs / "python"), str(Path(folder, rest[0])), *rest[1:]]
    return [str(programs / rest[0]), *rest[1:]]


def _of_installer(package: McpPackage, machine: Machine) -> list[HostNeed]:
    program = installer_of(package, machine)
    target = program.resolve()
    if in_system(target):
        return []
    return [HostNeed(path=str(one), why="It runs the program.") for one in launch_of(target, machine).needs]


def _needs_of_arguments(arguments: Iterable[str], machine: Machine) -> list[HostNeed]:
    """Return what programs of the system need that the arguments name, as a browser its settings."""
    named = [Path(part) for one in arguments for part in one.split("=") if part.startswith("/usr/")]
    found = [one for one in named if machine.find(str(one)) is not None]
    return [
        HostNeed(path=str(need), why=f"{one.name} reads it.") for one in found for need in launch_of(one, machine).needs
    ]


def _browser(argv: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """The arguments by which a server that drives a browser starts the one of this machine, where it names none."""
    if not any("playwright" in one for one in argv) or any(one.partition("=")[0] in CHOOSES for one in argv):
        return ()
    found = next((path for name in BROWSERS if (path := machine.find(name)) is not None and in_system(path)), None)
    return ("--headless", "--isolated", "--no-sandbox", "--executable-path", str(found)) if found else ()


def _data(arguments: Iterable[str], variables: Mapping[str, str], machine: Machine) -> list[HostNeed]:
    """Folders and files that the command line and the environment name."""
    texts = [part for one in arguments for part in ([one] if os.path.isdir(one) else re.split(r"[=,]", one))]
    texts += variables.values()
    needs = []
    for text in texts:
        path = Path(re.sub(r"^(?:file|sqlite)://(?=/)", "", text))
        if not path.is_absolute() or len(path.parts) < 2 or "://" in text[:8] or in_system(path):
            continue
        is_folder = os.path.isdir(path)
        place = path if is_folder else path.parent
        if not os.path.isdir(place) or (not os.path.exists(path) and not path.suffix):
            continue
        is_data = path.suffix.lower() in DATA or (path.suffix == ".json" and not os.path.exists(path))
        place = path if not is_data and os.path.isfile(path) else place
        why = "The command names it." if place == path else f"The command names {path.name} in it."
        needs.append(HostNeed(path=str(place), why=why, may_change=True, is_changed=is_data))
    return needs


def _lacking(needs: Iterable[HostNeed], granted: Sequence[Path], machine: Machine) -> tuple[HostNeed, ...]:
    """Return what is not granted, may be, and is not part of another one."""
    kept: dict[str, HostNeed] = {}
    for need in sorted(needs, key=lambda one: len(Path(one.path).parts)):
        path, same = Path(need.path), kept.get(need.path)
        if _is_seen(path, granted) or not machine.may_give(path):
            continue
        if same is not None:
            change = {name: getattr(same, name) or getattr(need, name) for name in ("may_change", "is_changed")}
            kept[need.path] = replace(same, **change)
        elif not any(
            path.is_relative_to(one.path) and (one.is_changed or not need.is_changed) for one in kept.values()
        ):
            kept[need.path] = need
    return tuple(kept.values())[:NEEDS_MOST]


def _is_seen(path: Path, granted: Sequence[Path]) -> bool:
    return in_system(path) or any(path.is_relative_to(one) for one in granted)


def _network(argv: Sequence[str], variables: Mapping[str, str], package: Path | None) -> str:
    """Why a program seems to need the network; "" where nothing says so."""
    if any("://" in one and not one.startswith(("file:", "sqlite:")) for one in (*argv[1:], *variables.values())):
        return "The command or its environment names an address."
    if named := next((name for name in variables if _ONLINE.search(name)), ""):
        return f"Its environment has {named}."
    word = next((found[0] for one in argv if not one.startswith("/") and (found := _NETWORKED.search(one))), "")
    if word or (found := _NETWORKED.search(Path(argv[0]).name)):
        return f"Its name speaks of {word or (found[0] if found else '')}."
    if package is not None and _CLIENTS.search(_facts(package, Path(argv[0]).name)):
        return "It is made with a library that opens connections."
    return ""


def _facts(package: Path, program: str) -> str:
    if os.path.isfile(package / "package.json"):
        return text_of(package / "package.json")
    for points in package.glob("lib/python3*/site-packages/*.dist-info/entry_points.txt"):
        if re.search(rf"^{re.escape(program)}\s*=", text_of(points), re.MULTILINE):
            return text_of(points.parent / "METADATA")
    return ""
