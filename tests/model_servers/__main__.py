"""`python -m tests.model_servers` plays scenes on rows and shows the table.

`[--rows a,b] [--scenes c,d] [--json FILE | --write] [--why]`
"""

import argparse
import sys
from pathlib import Path

from tests.model_servers.rows import ROWS
from tests.model_servers.scenes import SCENES
from tests.model_servers.table import RESULTS, as_json, run, summary


def main() -> int:
    """Run what was asked for; 1 where a scene fails."""
    parser = argparse.ArgumentParser(description="Run every row of model servers through the scenes.")
    parser.add_argument("--rows", default="")
    parser.add_argument("--scenes", default="")
    parser.add_argument("--json", type=Path, help="write the table there")
    parser.add_argument("--write", action="store_true", help="write the table for docs/models.md")
    parser.add_argument("--why", action="store_true", help="tell of each failure what it was")
    asked = parser.parse_args()
    rows = [row for row in ROWS if not asked.rows or row.id in asked.rows.split(",")]
    scenes = [each for each in SCENES if not asked.scenes or each.__name__ in asked.scenes.split(",")]
    results = run(rows, scenes)
    if path := RESULTS if asked.write else asked.json:
        path.write_text(as_json(results), encoding="utf-8")
    sys.stdout.write(summary(results) + "\n")
    failed = [result for result in results if result.state == "fails"]
    if asked.why:
        sys.stdout.writelines(f"{each.row} {each.scene}: {each.why}\n" for each in failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
