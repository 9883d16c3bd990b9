"""What a message may ask of the database and of the files: the bounds that `make bench ARGS=turn` names."""

import json
import os

from tests.bench.measures.turn import GOALS
from tests.children import ROOT, run
from tests.patience import PATIENCE_S

TRIES = 3  # a look of the scheduler or of the outbox may fall into one of them


def measured() -> dict[str, dict[str, int]]:
    done = run(("turn", "--json"), env=os.environ, cwd=ROOT, module="tests.bench", timeout_s=3 * PATIENCE_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return {name: found[name] for name in GOALS}


def test_a_message_stays_within_its_transactions_and_files() -> None:
    tries: list[dict[str, dict[str, int]]] = []
    for _ in range(TRIES):
        tries.append(measured())
        over = {
            (name, what): least
            for name, goals in GOALS.items()
            for what, most in goals.items()
            if (least := min(one[name][what] for one in tries)) > most
        }
        if not over:
            return
    raise AssertionError(f"over the bounds {GOALS}: {over}")
