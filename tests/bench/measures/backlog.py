"""1,000 jobs that are due at once: messages of one person ahead of another's prompt; prompts of eight people."""

from contextlib import ExitStack

from cortex.base.job import JobKind
from tests.bench.due import due_at_once
from tests.bench.figure import Bench, Figure
from tests.bench.houses import house
from tests.e2e.caller import Caller

JOBS, PEOPLE = 1_000, 8
KINDS: tuple[JobKind, ...] = ("message", "prompt")


def measure(bench: Bench) -> list[Figure]:
    """A house for each kind of job: how long, processor, memory, and who else waits; by the offline model."""
    return [figure for database in bench.databases for kind in KINDS for figure in _measured(bench, database, kind)]


def _measured(bench: Bench, database: str, kind: JobKind) -> list[Figure]:
    with house(bench, database) as opened, ExitStack() as stack:
        ada = stack.enter_context(Caller(opened.door)).set_up()
        for number in range(PEOPLE - 1):
            stack.enter_context(ada.invite(f"P{number}"))
        ada.get("/c/new")
        return due_at_once(opened, ada, kind, bench.count(JOBS))
