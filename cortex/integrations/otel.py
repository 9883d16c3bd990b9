"""OpenTelemetry traces, of the extra `otel`: a span a turn, and in it one a model call and one a tool call.

They name tools and count tokens, never a text, a name or an id of a person. Loaded only where
CORTEX_OTEL_ENDPOINT is set; sent in the background, and what cannot be sent is dropped.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from cortex.base.messages import Message, ToolCall
from cortex.base.turn import Answer, Decision, Performed, Reply, RoundPlan, Turn
from cortex.ports.loop import ModelCalls, ToolRunner

SEND_WITHIN_S = 10

Body = Callable[[str, dict[str, Any]], Coroutine[Any, Any, None]]


class TraceExport:
    """Makes the spans and sends them. `close` it: that sends what is left."""

    def __init__(self, endpoint: str) -> None:
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=SEND_WITHIN_S)
        self._provider = TracerProvider(resource=Resource({"service.name": "cortex"}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("cortex")

    def turn(self, body: Body) -> Body:
        """The durable body of a turn, in a span."""

        async def traced(run_id: str, argument: dict[str, Any]) -> None:
            with _span(self._tracer, "turn"):
                await body(run_id, argument)

        return traced

    def model_caller(self, inner: ModelCalls) -> ModelCalls:
        """The same model calls, each in a span."""
        return _TracedModelCalls(inner, self._tracer)

    def tool_runner(self, inner: ToolRunner) -> ToolRunner:
        """The same tool calls, each in a span."""
        return _TracedToolRunner(inner, self._tracer)

    async def close(self) -> None:
        """Send what is left and stop."""
        await asyncio.to_thread(self._provider.shutdown)


def _span(tracer: Tracer, name: str) -> AbstractContextManager[Span]:
    """A span in the one that is open here. What is raised inside is not in it: its words may be a person's."""
    span: AbstractContextManager[Span] = tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    )
    return span


class _TracedModelCalls(Struct, frozen=True):
    inner: ModelCalls
    tracer: Tracer

    async def answer(self, turn: Turn, plan: RoundPlan, past: Sequence[Message], added: Sequence[Message]) -> Reply:
        with _span(self.tracer, "model call") as span:
            reply = await self.inner.answer(turn, plan, past, added)
            span.set_attribute("gen_ai.usage.input_tokens", reply.usage.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", reply.usage.output_tokens)
            if reply.failure:
                span.set_status(Status(StatusCode.ERROR, reply.failure_kind))
            return reply


class _TracedToolRunner(Struct, frozen=True):
    inner: ToolRunner
    tracer: Tracer

    async def decide(self, turn: Turn, round_number: int, call: ToolCall) -> Decision:
        return await self.inner.decide(turn, round_number, call)

    async def wait_for_answer(self, turn: Turn, decision: Decision) -> Answer:
        with _span(self.tracer, "approval"):
            return await self.inner.wait_for_answer(turn, decision)

    async def perform(
        self, turn: Turn, round_number: int, call: ToolCall, decision: Decision, answer: Answer | None
    ) -> Performed:
        with _span(self.tracer, "tool call") as span:
            span.set_attribute("gen_ai.tool.name", decision.tool)  # not as the model wrote it
            done = await self.inner.perform(turn, round_number, call, decision, answer)
            if done.result.is_error:
                span.set_status(StatusCode.ERROR)
            return done
