"""The figures of the server as Prometheus reads them (text format 0.0.4): counts, durations, tokens, queue lengths.

No text, name or id of a person is in them. `web/pages/metrics.py` asks, with a token of its own.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.clock import ticks_s
from cortex.services.chat.streams import OpenStreams
from cortex.services.runtime import Runtime
from cortex.storage.figures import Counted, FiguresRepository, ModelFigures

KEPT_S = 5.0  # the sums read every round: whoever asks oftener gets the same again
STATES: Mapping[Counted, str] = {
    "turns": "Turns that are stored, by state; queued, running and waiting ones are the queue.",
    "calls": "Tool calls that are stored, by state.",
    "slots": "Due times of jobs that are stored, by state; planned and running ones are the queue.",
    "deliveries": "Deliveries of notifications that are stored, by state.",
    "approvals": "Approval requests that are stored, by state; asked ones wait.",
}


class Metric(Struct, frozen=True, kw_only=True):
    """One metric: samples as pairs of labels and value. Units stand in its name."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]


class MetricsService(Struct, kw_only=True):
    """Gathers the figures; keeps them for a few seconds."""

    runtime: Runtime
    streams: OpenStreams
    started_at: datetime
    _kept: tuple[float, str] | None = None

    async def text(self) -> str:
        """All metrics, as Prometheus reads them."""
        at = ticks_s()
        if self._kept is None or at - self._kept[0] > KEPT_S:
            self._kept = (at, "".join(map(shown, await self._all())))
        return self._kept[1]

    async def _all(self) -> list[Metric]:
        figures = self.runtime.db.repository(FiguresRepository)
        counted = [
            Metric(
                name=f"cortex_{what}",
                kind="gauge",
                help=words,
                samples=[({"state": state}, count) for state, count in sorted((await figures.by_state(what)).items())],
            )
            for what, words in STATES.items()
        ]
        timed, ms = await figures.tool_ms()
        models, due = await figures.models(), await figures.longest_due()
        lag_s = max(0.0, (self.runtime.clock() - due).total_seconds()) if due else 0.0
        runs = len(await self.runtime.runner.unfinished())
        return [
            *counted,
            _gauge("cortex_tool_calls_timed", "Tool calls whose duration is known.", timed),
            _gauge("cortex_tool_call_duration_seconds", "Their duration together.", ms / 1000),
            *_of_models(models),
            _gauge("cortex_scheduler_lag_seconds", "For how long the oldest due job or reminder has waited.", lag_s),
            _gauge("cortex_engine_runs", "Runs of the engine that have not ended.", runs),
            _gauge("cortex_streams", "Pages that follow a conversation live, in this process.", self.streams.count),
            *self._of_process(),
        ]

    def _of_process(self) -> Iterator[Metric]:
        up_s = (self.runtime.clock() - self.started_at).total_seconds()
        times = os.times()
        yield _gauge("cortex_up_seconds", "For how long this process runs.", up_s)
        used_s = times.user + times.system
        yield _counter("process_cpu_seconds_total", "Processor time of this process.", [({}, used_s)])
        free = shutil.disk_usage(self.runtime.settings.home).free
        yield _gauge("cortex_disk_free_bytes", "Free on the disk of HOME.", free)


def shown(metric: Metric) -> str:
    """A metric in the text format."""
    lines = [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
    for labels, value in metric.samples:
        marks = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        lines.append(f"{metric.name}{'{' + marks + '}' if marks else ''} {value:.10g}")
    return "\n".join(lines) + "\n"


def _of_models(models: Sequence[ModelFigures]) -> Iterator[Metric]:
    by_state = sorted(models, key=lambda m: m.state)
    for name, help, figures in (
        ("calls_total", "Model calls, by how they ended.", [m.calls for m in by_state]),
        ("calls_timed_total", "Those whose duration is known.", [m.timed for m in by_state]),
        ("call_duration_seconds_total", "Their duration together.", [m.ms / 1000 for m in by_state]),
    ):
        states = [{"state": m.state} for m in by_state]
        yield _counter(f"cortex_model_{name}", help, list(zip(states, figures, strict=True)))
    tokens = [
        ({"kind": kind}, sum(getattr(m, f"{kind}_tokens") for m in models))
        for kind in ("input", "output", "cached", "written")
    ]
    help = "Tokens of model calls; cached and written ones are parts of the input."
    yield _counter("cortex_model_tokens_total", help, tokens)
    cost_usd = sum(m.cost_usd for m in models)
    yield _counter("cortex_model_cost_usd_total", "Cost of the model calls whose price is known.", [({}, cost_usd)])


def _gauge(name: str, help: str, value: float) -> Metric:
    return Metric(name=name, kind="gauge", help=help, samples=[({}, value)])


def _counter(name: str, help: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Metric:
    return Metric(name=name, kind="counter", help=help, samples=samples)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
