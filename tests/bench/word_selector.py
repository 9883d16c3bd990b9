"""An example of a selector for `make bench ARGS="selection --selector …"`: names the tools whose names share a word.

Standard library alone; docs/bench.md has the protocol. A test runs it.
"""

import json
import sys
from typing import Any

MOST = 5


def main() -> None:
    """Read the tools once, then answer message by message until the input ends."""
    tools = json.loads(sys.stdin.readline())["tools"]
    say({"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        said = set(asked["message"].lower().split())
        shared = {tool["name"]: len(said & set(tool["name"].split("_"))) for tool in tools}
        best = sorted((name for name in shared if shared[name]), key=lambda name: -shared[name])
        say({"id": asked["id"], "tools": best[:MOST]})


def say(line: dict[str, Any]) -> None:
    """One line, at once."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
