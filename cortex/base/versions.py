"""Which program serves a HOME: the installation's own, or a version that an update put into HOME/versions.

One small file, replaced by rename, says which; whoever starts hands over to it. So an update is one step, and so is the
way back: a kill at any moment leaves the one program or the other. The file counts for the installation that wrote it:
who updates that by hand (`git pull`) runs what they installed.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cortex import VERSION
from cortex.base import private
from cortex.base.errors import ConfigError
from cortex.base.record import as_dict
from cortex.base.serve_lock import is_served, serving

FOLDER, FILE, CODE, ENVIRONMENT = "versions", "chosen.json", "code", "env"
HANDED = "_CORTEX_VERSION"  # which version this process was handed over to: one that is another is damaged
TRIES = 3
GIT_S, MIGRATE_S = 10, 3_600
ROOT = Path(__file__).resolve().parents[2]

log = logging.getLogger(__name__)


class Chosen(Struct, frozen=True, kw_only=True):
    """The version that the file names. `name`: a folder of HOME/versions, "" for the installation's own program.

    base, base_python: the installation that it counts for. before: what ran before, by name, None where there is no
    way back; revision: of the tables then. is_kept: it has served; starts: how often it was to, until then. goes_back:
    an admin wants the version before. at: when it was chosen, in ISO form. note: what became of it, for people, and
    is_told: admins were told.
    """

    name: str
    label: str
    base: str
    base_python: str
    before: str | None = None
    before_label: str = ""
    revision: str = ""
    is_kept: bool = False
    starts: int = 0
    goes_back: bool = False
    at: str = ""
    note: str = ""
    is_told: bool = False


def read(home: Path) -> Chosen | None:
    """Return what is chosen for this HOME; None where no update was ever made, or the file is not ours."""
    try:
        return Chosen(**json.loads((home / FOLDER / FILE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("versions: cannot read which version is chosen, going on with this one: %s", error)
        return None


def choose(home: Path, chosen: Chosen) -> None:
    """From now on it is this: as a whole or not at all, also after a power cut."""
    beside = home / FOLDER / f"{FILE}.new"
    private.make_folder(beside.parent)
    private.write_beside(beside, json.dumps(as_dict(chosen)).encode())
    private.sync(beside)
    beside.replace(home / FOLDER / FILE)
    private.sync(beside.parent)


def kept(home: Path) -> None:
    """This process serves: the version that it is needs no further try."""
    chosen = read(home)
    if chosen is not None and not chosen.is_kept and chosen.name == own_name(home):
        choose(home, replace(chosen, is_kept=True))


def own_name(home: Path) -> str:
    """The version that this process is, "" for the installation's own program."""
    is_ours = ROOT.name == CODE and ROOT.parent.parent == (home / FOLDER).resolve()
    return ROOT.parent.name if is_ours else ""


def identity(root: Path) -> str:
    """Return what an installation is: another one after each change of it by hand, by git or by a package manager."""
    if (root / ".git").exists():
        try:
            command = ["git", "-C", str(root), "rev-parse", "HEAD"]
            return subprocess.run(command, capture_output=True, text=True, timeout=GIT_S, check=True).stdout.strip()  # noqa: S603 - fixed words
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("versions: git does not say what is checked out: %s", error)
    return f"{VERSION} {(root / 'cortex' / '__init__.py').stat().st_mtime_ns}"


def python_of(home: Path, name: str) -> Path:
    """The program of a version."""
    return home / FOLDER / name / ENVIRONMENT / "bin" / "python"


def follow(home: Path, *, is_serving: bool) -> None:
    """Hand this process over to the chosen version, where that is another one; else return.

    is_serving: for `cortex serve`, which counts the tries of a new version, and goes back after three. ConfigError when
    neither can be run.
    """
    chosen, mine = read(home), own_name(home)
    if chosen is None:
        return
    if not mine and chosen.base != identity(ROOT):
        log.warning("versions: this installation was changed by hand, so %s is not used", chosen.label)
        return
    if is_serving and not is_served(home):
        chosen = _on_start(home, chosen, mine)
    if chosen.name == mine:
        return
    if os.environ.get(HANDED) == (chosen.name or FOLDER):
        raise ConfigError(f"The version {chosen.label} in {str(home / FOLDER)!r} is damaged: its files have changed.")
    python = python_of(home, chosen.name) if chosen.name else Path(chosen.base_python)
    if not python.exists():
        log.warning("versions: %s is not there any more, going on with this one", chosen.label)
        return
    _hand_over(str(python), chosen.name or FOLDER)


def _hand_over(python: str, name: str) -> None:
    """Become this program with the same words. It finds its own code, whatever the folder or PYTHONPATH hold."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", HANDED)}
    environment |= {"PYTHONSAFEPATH": "1", HANDED: name}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(python, [python, "-P", "-m", "web", *sys.argv[1:]], environment)  # noqa: S606 - ourselves, without a shell


def _on_start(home: Path, chosen: Chosen, mine: str) -> Chosen:
    """Count a try of a new version; or go back, because it has failed or an admin wants it. What is chosen then."""
    if chosen.goes_back:
        return _go_back(home, chosen, f"Cortex went back from {chosen.label} to {chosen.before_label}.")
    if chosen.is_kept or chosen.name == mine:
        return chosen
    if chosen.starts >= TRIES:
        why = f"Cortex {chosen.label} did not start {TRIES} times, so {chosen.before_label} runs again."
        return _go_back(home, chosen, why)
    chosen = replace(chosen, starts=chosen.starts + 1)
    choose(home, chosen)
    return chosen


def _go_back(home: Path, chosen: Chosen, note: str) -> Chosen:
    """Let the newer program take its changes of the tables back, then choose the version before.

    The tables first: killed between the two, the newer one finds older tables, and brings them up to date again.
    """
    with serving(home):
        problem = _take_tables_back(home, chosen)
        if problem and not chosen.goes_back:
            raise ConfigError(f"{chosen.label} does not start, and its tables cannot be rolled back: {problem}")
        if problem:
            log.error("versions: staying with %s: %s", chosen.label, problem)
            stays = f"Cortex stays at {chosen.label}, because its tables could not be rolled back: {problem}"
            after = replace(chosen, goes_back=False, note=stays, is_told=False)
        else:
            after = replace(
                chosen, name=chosen.before or "", label=chosen.before_label, before=None, before_label="", revision="",
                is_kept=True, starts=0, goes_back=False, note=note, is_told=False,
            )  # fmt: skip
        choose(home, after)
    return after


def _take_tables_back(home: Path, chosen: Chosen) -> str:
    """Return what is wrong, "" for nothing."""
    python = str(python_of(home, chosen.name))
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", HANDED)}
    command = [python, "-P", "-m", "web", "migrate", "--to", chosen.revision]
    try:
        ended = subprocess.run(  # noqa: S603 - ourselves, without a shell
            command, env=environment, capture_output=True, text=True, timeout=MIGRATE_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return "" if ended.returncode == 0 else (ended.stderr.strip().splitlines() or ["it ended with an error"])[-1]
