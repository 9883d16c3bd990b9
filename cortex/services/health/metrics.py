"""The figures of the server as Prometheus reads them (text format 0.0.4): counts, durations, tokens, queue lengths.

No text, name or id of a person is in them. `web/pages/metrics.py` asks, with a token of its own.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: samples as pairs of labels and value. Units stand in its name."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]


class MetricsService:
    """Gathers the figures; keeps them for a few seconds."""

    def __init__(self, *, runtime: Runtime, streams: OpenStreams, started_at: datetime) -> None:
        self._runtime = runtime
        self._streams = streams
        self._started_at = started_at
        self._kept: tuple[float, str] | None = None

    async def text(self) -> str:
        """All metrics, as Prometheus reads them."""
        at = ticks_s()
        if self._kept is None or at - self._kept[0] > KEPT_S:
            self._kept = (at, "".join(map(shown, await self._all())))
        return self._kept[1]

    async def _all(self) -> list[Metric]:
        figures = self._runtime.db.repository(FiguresRepository)
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
        lag_s = max(0.0, (self._runtime.clock() - due).total_seconds()) if due else 0.0
        runs = len(await self._runtime.runner.unfinished())
        return [
            *counted,
            _gauge("cortex_tool_calls_timed", "Tool calls whose duration is known.", timed),
            _gauge("cortex_tool_call_duration_seconds", "Their duration together.", ms / 1000),
            *_of_models(models),
            _gauge("cortex_scheduler_lag_seconds", "For how long the oldest due job or reminder has waited.", lag_s),
            _gauge("cortex_engine_runs", "Runs of the engine that have not ended.", runs),
            _gauge("cortex_streams", "Pages that follow a conversation live, in this process.", self._streams.count),
            *self._of_process(),
        ]

    def _of_process(self) -> Iterator[Metric]:
        up_s = (self._runtime.clock() - self._started_at).total_seconds()
        times = os.times()
        yield _gauge("cortex_up_seconds", "For how long this process runs.", up_s)
        yield Metric(
            name="process_cpu_seconds_total",
            kind="counter",
            help="Processor time of this process.",
            samples=[({}, times.user + times.system)],
        )
        free = shutil.disk_usage(self._runtime.settings.home).free
        yield _gauge("cortex_disk_free_bytes", "Free on the disk of HOME.", free)


def shown(metric: Metric) -> str:
    """A metric in the text format."""
    lines = [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
    for labels, value in metric.samples:
        marks = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        lines.append(f"{metric.name}{'{' + marks + '}' if marks else ''} {value:.10g}")
    return "\n".join(lines) + "\n"


def _of_models(models: Sequence[ModelFigures]) -> Iterator[Metric]:
    yield _counter("cortex_model_calls_total", "Model calls, by how they ended.", {m.state: m.calls for m in models})
    yield _counter(
        "cortex_model_calls_timed_total", "Those whose duration is known.", {m.state: m.timed for m in models}
    )
    durations_s = {m.state: m.ms / 1000 for m in models}
    yield _counter("cortex_model_call_duration_seconds_total", "Their duration together.", durations_s)
    yield Metric(
        name="cortex_model_tokens_total",
        kind="counter",
        help="Tokens of model calls; cached and written ones are parts of the input.",
        samples=[
            ({"kind": "input"}, sum(m.input_tokens for m in models)),
            ({"kind": "output"}, sum(m.output_tokens for m in models)),
            ({"kind": "cached"}, sum(m.cached_tokens for m in models)),
            ({"kind": "written"}, sum(m.written_tokens for m in models)),
        ],
    )
    yield Metric(
        name="cortex_model_cost_usd_total",
        kind="counter",
        help="Cost of the model calls whose price is known.",
        samples=[({}, sum(m.cost_usd for m in models))],
    )


def _gauge(name: str, help: str, value: float) -> Metric:
    return Metric(name=name, kind="gauge", help=help, samples=[({}, value)])


def _counter(name: str, help: str, by_state: Mapping[str, float]) -> Metric:
    samples = [({"state": state}, value) for state, value in sorted(by_state.items())]
    return Metric(name=name, kind="counter", help=help, samples=samples)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
