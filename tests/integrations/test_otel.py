"""OpenTelemetry traces: of a real turn, to a real collector's door, with nothing in them that names a person."""

import gzip
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cortex.app import Cortex
from tests.children import ROOT, environment
from tests.databases import house_settings
from tests.living_house import living_house

WORDS = "truffles at midnight"


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """An address that takes traces, and what came."""
    came: list[bytes] = []

    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the test's output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", came
        server.shutdown()
        thread.join()


async def test_a_turn_is_traced_with_its_calls_and_without_a_word_of_it(tmp_path: Path) -> None:
    trace_service = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="needs the extra otel"
    )
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="needs the extra otel")
    with collector() as (endpoint, came):
        async with living_house(tmp_path, otel_endpoint=endpoint) as house:
            cid = await house.conversation()
            turn = await house.say(cid, f"add {WORDS} to my shopping list")
    spans = [
        span
        for body in came
        for resource in trace_service.ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    by_name = {span.name: span for span in spans}
    assert {"turn", "model call", "tool call"} <= by_name.keys()
    parents = {by_name[name].parent_span_id for name in ("model call", "tool call")}
    assert parents == {by_name["turn"].span_id}
    tools = [pair.value.string_value for pair in by_name["tool call"].attributes if pair.key == "gen_ai.tool.name"]
    assert tools == ["task_create"]
    for word in (b"truffles", b"shopping", b"ada", house.admin.id.encode(), cid.encode(), turn.encode()):
        assert all(word not in body for body in came), word


@pytest.mark.parametrize("half", ["cortex.app", "web.serve", "web.worker"])
def test_nothing_of_it_is_loaded_by_default(tmp_path: Path, half: str) -> None:
    # The web framework reads the API of OpenTelemetry by itself; what makes and sends traces is the extra's.
    ours = "('opentelemetry.sdk', 'opentelemetry.exporter', 'cortex.integrations.otel')"
    shown = f"import sys, {half}; print([name for name in sys.modules if name.startswith({ours})])"
    done = subprocess.run(
        [sys.executable, "-c", shown], cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


async def test_a_command_makes_no_exporter_only_to_close_it(tmp_path: Path) -> None:
    """It would load the extra, or end every command with an error where the extra is not installed."""
    async with Cortex.at_rest(house_settings(home=tmp_path, otel_endpoint="http://127.0.0.1:1")) as cortex:
        await cortex.accounts.users()
    assert "traces_sent" not in vars(cortex)
