"""The first requests by kind of model, in docs/benchmarks.md: `make bench ARGS=prompts` and its update.

What `cortex prompt-size` says in a new home: an admin's orchestrator, o200k tokens of system, tools, catalog, message.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.children import ROOT

MOST, LOCAL_MOST = 900, 1_200
MESSAGES = {  # message -> the most that its first request may be, by profile
    "hello": {"none": 350, "local": 200},
    "add milk and eggs to my shopping list": {"none": MOST, "local": MOST},
    "what's on my list": {"none": MOST, "local": LOCAL_MOST},
    "show file notes.md": {"none": MOST, "local": LOCAL_MOST},
    "run `df -h` in the shell": {"none": MOST, "local": LOCAL_MOST},
}
KINDS = {"none": "caches nothing", "anthropic": "strong, behind a cache", "local": "local"}


def size(home: Path, message: str, profile: str = "none") -> dict[str, Any]:
    """The parts of the request and their total, in tokens, for a model of this profile."""
    home.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "web", "prompt-size", message, "--profile", profile, "--json"],
        cwd=home,
        env={"PYTHONPATH": str(ROOT), "CORTEX_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    sizes: dict[str, Any] = json.loads(done.stdout)
    return sizes


def markdown(home: Path, told: str) -> str:
    """The table under one line that says when it was taken."""
    lines = [told, "", f"| first request of | {' | '.join(KINDS.values())} |", f"|---|{'--:|' * len(KINDS)}"]
    for message, goals in MESSAGES.items():
        totals = (_told(size(home, message, profile)["total"], goals.get(profile)) for profile in KINDS)
        lines.append(f"| {message} | {' | '.join(totals)} |")
    return "\n".join(lines)


def _told(total: int, goal: int | None) -> str:
    """The tokens with the most that they may be; an asterisk where they are more."""
    return f"{total:,}" if goal is None else f"{total:,}{'*' if total > goal else ''} (≤{goal:,})"
