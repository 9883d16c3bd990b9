"""Whether Cortex takes no more than the committed table of counts says: a part of `make check`.

`python -m tests.bench.counts` counts anew (`counted.py`) and compares with `counts.json` beside it; `--update` writes
the table, to be read in the diff. No clock is asked, so that a busy machine counts the same.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.counted import counted
from tests.bench.figure import Unmeasured

TABLE = Path(__file__).with_name("counts.json")
SHARE = 0.03  # what a row may change by without a word
THREADS = 2  # how many of a pool there are depends on what came at once
UPDATE = "python -m tests.bench.counts --update"
Counts = Mapping[str, int]


def main(words: list[str] | None = None) -> int:
    """Count, compare or update; 1 when a row is not as committed, or could not be counted."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.counts", description="Keep what Cortex takes.")
    parser.add_argument("--update", action="store_true", help="take today's counts as the ones to keep")
    given = parser.parse_args(words)
    try:
        with tempfile.TemporaryDirectory(prefix="cortex-counts-") as folder:
            now = counted(Path(folder))
    except Unmeasured as error:
        sys.stderr.write(f"The counts could not be taken: {error}.\n")
        return 1
    if given.update:
        TABLE.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
        return 0
    differences = [*rises(committed(), now), *falls(committed(), now)]
    for line in differences:
        sys.stderr.write(f"{line}\n")
    return 1 if differences else 0


def committed() -> dict[str, int]:
    """The table as it stands in the repository."""
    table: dict[str, int] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def rises(kept: Counts, now: Counts) -> Iterator[str]:
    """A sentence for each row that grew by more than its slack, and for each that one of the two does not have."""
    for name in sorted(kept.keys() ^ now.keys()):
        yield f"{name}: in {'the table alone, not counted any more' if name in kept else 'no table yet'}: {UPDATE}"
    for name in (name for name in kept if name in now):
        if now[name] > kept[name] + slack(name, kept[name]):
            yield (
                f"{name}: {now[name]:,}, was {kept[name]:,}. Find what brought them; "
                f"if they are meant: {UPDATE}, and say why in the commit."
            )


def falls(kept: Counts, now: Counts) -> Iterator[str]:
    """A sentence for each row that became less by more than its slack: a table that is not true holds nothing."""
    for name in (name for name in kept if name in now):
        if now[name] < kept[name] - slack(name, kept[name]):
            yield f"{name}: {now[name]:,}, was {kept[name]:,}: better. To keep it: {UPDATE}"


def slack(name: str, count: int) -> int:
    """What this row may change by: nothing where three of a hundred are less than one, or of packages."""
    if name.startswith("threads"):
        return THREADS
    return 0 if name == "packages" else int(count * SHARE)


if __name__ == "__main__":
    sys.exit(main())
