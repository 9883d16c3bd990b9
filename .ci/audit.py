"""Known vulnerabilities in what is pinned: `make audit` looks for them, `make lock` writes what cannot be looked up.

A known vulnerability fails. A pin that nobody could look up fails too, unless requirements/unaudited.txt has it: what
is in that list is printed last, and never counted as checked. Asks pip-audit, the one on PATH; needs nothing else.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

EXTRAS = ("requirements/postgres.txt", "requirements/semantic.txt", "requirements/otel.txt", "requirements/ddgs.txt")
LOCKS = ("requirements/run.txt", *EXTRAS)
LIST = Path("requirements/unaudited.txt")
LIMIT_S = 180
HEAD = (
    "# Pins that could not be looked up when `make lock` last ran: name, version, date, reason. See CONTRIBUTING.md.\n"
)
PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
ENTRY = re.compile(r"^(\S+)==(\S+)  # (\d{4}-\d\d-\d\d) (.+)$")

Pin = tuple[str, str]  # name as an index spells it, version


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What pip-audit answered: the pins it looked up, a line for each vulnerability, why it skipped the rest."""

    checked: frozenset[Pin] = frozenset()
    vulnerable: Sequence[str] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)  # name -> reason
    failure: str = ""  # why there is no answer at all

    def reason(self, pin: Pin) -> str:
        """Why this pin could not be looked up."""
        return self.failure or self.skipped.get(pin[0], "not asked: it is not for this system")


def main(options: Sequence[str]) -> int:
    """Look (exit code 1 for what must not pass), or with `--write` write the list."""
    pins = pinned(Path(lock).read_text(encoding="utf-8") for lock in LOCKS)
    found = ask()
    unchecked = sorted(pins - found.checked)
    if options == ["--write"]:
        write(unchecked, found)
    listed = entries(LIST.read_text(encoding="utf-8") if LIST.exists() else "")
    unlisted = [pin for pin in unchecked if pin not in listed]
    for line in found.vulnerable:
        print(f"VULNERABLE: {line}")
    for pin in unlisted:
        print(f"NOT CHECKED and not in {LIST}: {'=='.join(pin)} ({found.reason(pin)})")
    if unlisted:
        print("Look again later; where no index can be asked, `make lock` writes the list anew, to be committed.")
    if unchecked:
        newest = max(listed.values(), default="none")
        print(f"NOT CHECKED: {len(unchecked)} of {len(pins)}, list of {newest}")
    else:
        print(f"checked: all {len(pins)} pins, {len(found.vulnerable)} known vulnerabilities")
    return 1 if found.vulnerable or unlisted else 0


def pinned(locks: Iterable[str]) -> frozenset[Pin]:
    """Every pin of these lock files."""
    return frozenset((_normal(name), version) for text in locks for name, version in PIN.findall(text))


def entries(text: str) -> dict[Pin, str]:
    """The list's pins with their dates. ValueError for a line that is none."""
    listed: dict[Pin, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            entry = ENTRY.match(line)
            if not entry:
                raise ValueError(f"{LIST}: cannot read {line!r}; write name==version  # date reason")
            listed[_normal(entry[1]), entry[2]] = entry[3]
    return listed


def ask() -> Found:
    """What pip-audit knows of the lock files now."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        asked = ["pip-audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off", "--timeout", "15"]
        asked += ["--format", "json", "--output", str(answer), *(word for lock in LOCKS for word in ("-r", lock))]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=LIMIT_S)
            return _read(answer.read_text(encoding="utf-8"))
        except subprocess.TimeoutExpired:
            return Found(failure=f"no answer within {LIMIT_S} seconds")
        except FileNotFoundError as error:
            if error.filename == "pip-audit":
                return Found(failure="pip-audit is not installed")
            return Found(failure=_last_line(done.stderr) or "pip-audit gave no answer")
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            return Found(failure=f"pip-audit's answer cannot be read: {type(error).__name__}")


def write(unchecked: Sequence[Pin], found: Found) -> None:
    """Make the list say what could not be looked up today."""
    today = datetime.now(UTC).date().isoformat()
    lines = [f"{name}=={version}  # {today} {found.reason((name, version))}\n" for name, version in unchecked]
    LIST.write_text(HEAD + "".join(lines), encoding="utf-8")


def _read(text: str) -> Found:
    rows = json.loads(text)["dependencies"]
    looked_up = [row for row in rows if "skip_reason" not in row]
    return Found(
        checked=frozenset((_normal(row["name"]), row["version"]) for row in looked_up),
        vulnerable=[
            f"{row['name']} {row['version']}: {one['id']}, mended in {', '.join(one['fix_versions']) or 'no version'}"
            for row in looked_up
            for one in row["vulns"]
        ],
        skipped={_normal(row["name"]): _plain(row["skip_reason"]) for row in rows if "skip_reason" in row},
    )


def _plain(reason: str) -> str:
    """The reason without the pin that it is about, which stands beside it."""
    return _last_line(reason.rpartition(": ")[0] or reason)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1][:200]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
