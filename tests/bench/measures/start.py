"""The first start of all, in CPU-seconds; a known home is weighed where people live (`make bench ARGS=weight`)."""

from tests.bench.figure import Bench, Figure, median
from tests.bench.processes import cpu_s, process_of, running


def measure(bench: Bench) -> list[Figure]:
    """One line: to ready on a home that is not there yet."""

    def to_ready(number: int) -> float:
        with running(bench.folder / f"new-{number}" / "home") as daemon:
            return cpu_s(process_of(daemon))

    to_ready(-1)  # compiles the bytecode
    how = f"`cortex serve` to /readyz 200, user + system time of the process tree, median of {bench.runs}"
    value = median(to_ready, bench.runs)
    return [Figure(what="start on a new home, tables made", value=value, unit="CPU-s", how=how)]
