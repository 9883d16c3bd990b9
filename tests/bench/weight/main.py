"""`make bench ARGS="weight"`: memory and processor of Cortex in a home where people live, beside a bare program.

Fails by name where a row grew by more than 5 % over `tests/bench/weight.json`; `--update` writes that and the table of
docs/benchmarks.md. `--peers` weighs public daemons of its kind too. Each round weighs all of them, one after the other.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CalledProcessError, TimeoutExpired

from tests.bench.figure import Unmeasured
from tests.bench.lived import TURNS, live, model_server
from tests.bench.processes import check_streamed
from tests.bench.weight.api import bare
from tests.bench.weight.cortex import CortexSubject
from tests.bench.weight.peers import OTHER_TOOLS, PEERS
from tests.bench.weight.subject import Plan, Subject, Unanswered, Weights, weigh
from tests.bench.weight.table import BARE, CORTEX, grown, kept, markdown

KEPT = Path(__file__).parents[1] / "weight.json"
PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- weight:begin -->", "<!-- weight:end -->"
PACE_S = 0.005  # between two words of the model
PLAN = Plan()
BARE_PLAN = Plan(quiet_s=5.0, idle_s=5.0, asked=200, turns=461)  # its hello is 6 ms: many are one figure
Tell = Callable[[str], None]


class Weighing:
    """Rounds of everything that is weighed; `missed`: what could not be, with the reason."""

    def __init__(self, folder: Path, tell: Tell, *, turns: int = TURNS, plan: Plan = PLAN, bare_plan: Plan = BARE_PLAN):
        self.rounds: dict[str, list[Weights]] = {}
        self.missed: dict[str, str] = {}
        self._folder, self._tell, self._turns = folder, tell, turns
        self._plans = {BARE: bare_plan, CORTEX: plan}

    def run(self, runs: int, *, has_peers: bool = False) -> None:
        """One round after the other, each on homes of its own. The lived-in home is made once."""
        peers = [one for one in PEERS if has_peers and self._is_there(one.name, one.install)]
        with ExitStack() as stack:
            model = stack.enter_context(model_server(*OTHER_TOOLS))
            model.delay_s = PACE_S
            self._tell(f"{self._turns} turns of two people …")
            lived = live(self._folder / "lived" / "home", model, self._turns)
            for number in range(runs):
                folder = self._folder / str(number)
                folder.mkdir()
                subjects: list[Subject] = [bare(folder, model), CortexSubject(lived, folder / "cortex" / "home")]
                subjects += (peer.subject(folder, model) for peer in peers)
                for subject in subjects:
                    self._tell(f"round {number + 1} of {runs}: {subject.name} …")
                    self._weigh(subject)
            check_streamed(model)

    def _weigh(self, subject: Subject) -> None:
        """CORTEX and BARE must be there; a peer that gives up is left out of the rounds to come."""
        if subject.name in self.missed:
            return
        try:
            found = weigh(subject, self._plans.get(subject.name, self._plans[CORTEX]))
        except Unanswered as error:
            if subject.name in self._plans:
                raise
            self.missed[subject.name] = str(error)
            self.rounds.pop(subject.name, None)
            return
        self.rounds.setdefault(subject.name, []).append(found)

    def _is_there(self, name: str, install: Callable[[], None]) -> bool:
        self._tell(f"installing {name} …")
        try:
            install()
        except (CalledProcessError, TimeoutExpired, OSError) as error:
            self.missed[name] = f"it could not be installed: {getattr(error, 'stderr', '') or error}"[-400:]
            return False
        return True


def main(words: list[str], machine: Callable[[], str]) -> int:
    """Weigh, print, compare or update; 1 where a row grew or something was not weighed."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=weight", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="rounds of which the median is taken")
    parser.add_argument("--peers", action="store_true", help=f"also {', '.join(one.name for one in PEERS)}, from PyPI")
    parser.add_argument("--update", action="store_true", help="keep them: weight.json and docs/benchmarks.md")
    given = parser.parse_args(words)
    head = f"{datetime.now(UTC).date().isoformat()} · {machine()}"
    with tempfile.TemporaryDirectory(prefix="cortex-weight-") as folder:
        weighing = Weighing(Path(folder), _tell)
        try:
            weighing.run(given.runs, has_peers=given.peers)
        except (Unanswered, Unmeasured) as error:
            _tell(f"nothing was weighed: {error}")
            return 1
    head += f", {os.getloadavg()[0]:.1f} behind · rounds: {given.runs}"
    found = f"{head}\n\n{markdown(weighing.rounds, weighing.missed)}"
    sys.stdout.write(f"{found}\n")
    for name, why in weighing.missed.items():
        _tell(f"{name} was not weighed: {why}")
    if given.update:
        keep(head, weighing, found)
        return 1 if weighing.missed else 0
    committed = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"rows": {}}
    worse = list(grown(committed["rows"], kept(weighing.rounds)))
    for line in worse:
        _tell(line)
    if worse:
        _tell('Find what brought it; if it is meant: make bench ARGS="weight --update", and say why in the commit.')
    return 1 if worse or weighing.missed else 0


def keep(head: str, weighing: Weighing, found: str) -> None:
    """Write what is compared with from now on, and the page's table."""
    told = {"taken": head, "rows": kept(weighing.rounds)}
    KEPT.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN, 1)
    PAGE.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
