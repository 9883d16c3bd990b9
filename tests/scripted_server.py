"""A strict model server for tests: OpenAI's chat completions and Responses, Anthropic's messages, on 127.0.0.1.

It answers by rules and by which schemas were sent, refuses what a strict provider would refuse, counts real tokens,
simulates the prefix cache, keeps a log and injects faults. Runs in a thread of its own, so any test can use it:

    with ScriptedServer(rule("milk", Use("task_create", {"title": "milk"}), "Added.")) as server: ...
"""

import asyncio
import json
import ssl
import threading
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any, Self

from cortex.base import tokens
from tests import loops, scripted_openai
from tests.patience import PATIENCE_S
from tests.scripted_pipe import WIRES, Fault, Left, Pipe, Seen, bent, cache_breaks, common, parsed
from tests.scripted_rules import Asked, Rule, Say, Spoken, Use, answer, rule

__all__ = ["Asked", "Fault", "Rule", "Say", "ScriptedServer", "Seen", "Use", "rule"]


class ScriptedServer:
    """The server; a context manager. `rules`, `faults`, `models` and `refuses` may be changed while it runs.

    `refuses`: status and body for a request's body that it does not take, None for what it takes.
    """

    def __init__(
        self,
        *rules: Rule,
        api_key: str = "test-key",
        cache_minimum_tokens: int = 1024,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.rules = list(rules)
        self.faults: deque[Fault] = deque()
        self.refuses: Callable[[dict[str, Any]], tuple[int, Any] | None] = lambda body: None
        self.models: list[dict[str, Any]] = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]
        self.log: list[Seen] = []
        self.api_key = api_key
        self.host = host
        self.port = 0
        self.delay_s = 0.0
        self._cache_minimum_tokens = cache_minimum_tokens
        self._prefixes: list[str] = []
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._came = threading.Condition()
        self._on = asyncio.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name="scripted model server", daemon=True)

    @property
    def origin(self) -> str:
        """http://host:port, the base URL for Anthropic; https with `tls`."""
        return f"http{'s' if self._tls else ''}://{self.host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI."""
        return f"{self.origin}/v1"

    @property
    def problems(self) -> list[str]:
        """Everything that was wrong in any request so far."""
        return [problem for seen in self.log for problem in seen.problems]

    def cache_breaks(self) -> list[str]:
        """Where a request did not extend the cached prefix of the one before it in the same conversation."""
        return cache_breaks([seen for seen in self.log if seen.status == 200], self._cache_minimum_tokens)

    def fail(self, *faults: Fault) -> None:
        """Let the next requests fail so, one each."""
        self.faults.extend(faults)

    def wait_for(self, requests: int) -> None:
        """Return once so many requests came."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.log) >= requests, PATIENCE_S)

    def go_on(self, times: int = 1) -> None:
        """End so many pauses."""
        for _ in range(times):
            self._loop.call_soon_threadsafe(self._on.release)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, self.host, 0, limit=1 << 24, ssl=self._tls)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        loops.close(self._loop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._one(reader, writer)
        except (Left, ConnectionError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:]) if name}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        await self._route(method, path.partition("?")[0], headers, raw, Pipe(reader, writer))

    async def _route(self, method: str, path: str, headers: dict[str, str], raw: bytes, pipe: Pipe) -> None:
        if (method, path) == ("GET", "/v1/models"):
            await pipe.whole(200, {"object": "list", "data": self.models})
        elif method == "POST" and path in WIRES:
            seen = Seen(path=path, headers=headers, body=parsed(raw), raw=raw)
            with self._came:
                self.log.append(seen)
                self._came.notify_all()
            pipe.seen = seen
            await self._answer(seen, pipe, WIRES[path])
        else:
            await pipe.whole(404, {"error": {"message": f"no {method} {path} here"}})

    async def _answer(self, seen: Seen, pipe: Pipe, wire: ModuleType) -> None:
        key = seen.headers.get("x-api-key") or seen.headers.get("authorization", "").removeprefix("Bearer ")
        if key != self.api_key:
            await pipe.whole(401, wire.error(401, "Incorrect API key provided."))
            return
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and fault.kind in ("status", "hang", "drop", "garbage"):
            await self._refuse(fault, pipe, wire)
            return
        seen.problems = wire.problems(seen.body, seen.headers)
        if seen.problems:
            await pipe.whole(400, wire.error(400, "; ".join(seen.problems)))
            return
        refusal = self.refuses(seen.body)
        if refusal is not None:
            await pipe.whole(*refusal)
            return
        said = bent(answer(wire.read(seen.body), self.rules), fault)
        seen.usage = self._usage(seen.body, said, wire)
        if not seen.body.get("stream"):
            await pipe.whole(200, wire.whole(seen.body, said, seen.usage))
            return
        finish = None if fault and fault.kind == "no_finish" else "tool_calls" if said.calls else "stop"
        finish = "length" if fault and fault.kind == "length" else finish
        pieces = wire.chunks(seen.body, said, seen.usage, finish)
        if fault and fault.kind == "no_choices" and wire is scripted_openai:
            pieces = [piece for piece in pieces if b'"delta"' not in piece]
        if fault and fault.kind == "error_event":
            error = json.dumps(wire.error(500, "The engine fell over.")).encode()
            pieces[len(pieces) // 2 :] = [b"event: error\ndata: " + error + b"\n\n"]
        await pipe.stream(pieces, fault, self.delay_s, self._on)

    async def _refuse(self, fault: Fault, pipe: Pipe, wire: ModuleType) -> None:
        match fault.kind:
            case "hang":
                await pipe.wait_for_client()
            case "drop":
                raise Left
            case "garbage":
                await pipe.whole(200, "<html>not a model</html>")
            case _:
                headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
                await pipe.whole(fault.status, wire.error(fault.status, f"Scripted {fault.status}."), headers)

    def _usage(self, body: dict[str, Any], said: Spoken, wire: ModuleType) -> dict[str, Any]:
        """True o200k tokens of the body; what stood at the beginning of an earlier body counts as cached."""
        visible = wire.prefix(body) or [body.get("tools") or [], body.get("system") or "", *body["messages"]]
        text = "".join(tokens.minified(each) for each in visible)
        total, cached = tokens.count(text), 0
        written = 0
        if wire.prefix(body) and total >= self._cache_minimum_tokens:
            same = max((common(text, earlier) for earlier in self._prefixes), default=0)
            cached = tokens.count(text[:same])
            cached = cached // 128 * 128 if cached >= self._cache_minimum_tokens else 0
            written = total - cached
            self._prefixes.append(text)
        spoken = said.text + said.thinking + "".join(call.name + call.arguments for call in said.calls)
        usage: dict[str, Any] = wire.usage(total, cached, max(1, tokens.count(spoken)), written)
        return usage
