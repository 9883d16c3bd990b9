"""Runs `cortex` commands where the disk is as a test wants it: in a mount namespace of their own, and without root's
right to pass over the modes of files. `python -m tests.e2e.walled SETUP COMMAND...`; prints what each said as JSON.

SETUP is a line for the shell that runs first; a COMMAND is its words with blanks between.
"""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.children import ROOT, environment
from tests.patience import PATIENCE_S

ROOTLESS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search")


def run_walled(home: Path, setup: str, *commands: str) -> list[tuple[int, str]]:
    """For each command its exit code and all that it printed. Skips the test where no namespace is to be had."""
    outer = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    inner = ["sh", "-c", f'{setup} && exec "$@"', "sh", *ROOTLESS, sys.executable, "-m", "tests.e2e.walled", *commands]
    tried = subprocess.run([*outer, "true"], capture_output=True, check=False) if shutil.which("unshare") else None
    if tried is None or tried.returncode or not shutil.which("setpriv"):
        pytest.skip("needs mount namespaces (unshare) and setpriv")
    env = environment(home, CORTEX_PORT="0")
    done = subprocess.run(
        [*outer, *inner], cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return [(code, text) for code, text in json.loads(done.stdout.splitlines()[-1])]


def _ran(words: Sequence[str]) -> tuple[int, str]:
    from web.__main__ import main  # noqa: PLC0415 - the tests themselves do without the program

    printed, code = io.StringIO(), 0
    sys.argv = ["cortex", *words]
    with redirect_stdout(printed), redirect_stderr(printed):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, printed.getvalue()


if __name__ == "__main__":
    sys.stdout.write(json.dumps([_ran(command.split()) for command in sys.argv[1:]]) + "\n")
