"""Daemons that are spoken to by OpenAI's chat completions: the bare program, and what the peers have of it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.lived import ADDED, ANSWER
from tests.bench.weight.subject import Unanswered
from tests.children import ROOT
from tests.patience import PATIENCE_S
from tests.ports import port_for
from tests.scripted_server import ScriptedServer

MODEL = "scripted-1"


@dataclass(kw_only=True)
class ApiSubject:
    """A program with a home of its own. `command` is given the port that it shall listen on.

    `ready`: the address that answers 200 once it works. `headers`: of a message, by the number of its conversation.
    """

    name: str
    home: Path
    command: Callable[[int], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready: str = "/health"
    headers: Callable[[int], Mapping[str, str]] = lambda _: {}
    origin: str = ""

    @contextmanager
    def running(self) -> Iterator[psutil.Process]:
        """Until its own health check answers; ended behind the block. Unanswered with its last words where it ends."""
        self.home.mkdir(parents=True, exist_ok=True)
        port = port_for(self)
        self.origin = f"http://127.0.0.1:{port}"
        printed = self.home.parent / f"{self.name}.log"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                self.command(port),
                cwd=self.home,
                env={"PATH": os.environ["PATH"], "HOME": str(self.home), **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            deadline_s = time.monotonic() + PATIENCE_S
            while not self._is_ready():
                if process.poll() is not None or time.monotonic() > deadline_s:
                    raise Unanswered(f"it did not start: {printed.read_text(errors='replace')[-400:]}")
                time.sleep(0.01)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def say(self, talk: int, text: str) -> float:
        """By a stream; each conversation is a session."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], "stream": True}
        begun_s, first_s, whole = time.perf_counter(), 0.0, ""
        try:
            with httpx.stream(
                "POST",
                f"{self.origin}/v1/chat/completions",
                json={**body, "session_id": f"talk-{talk}"},
                headers=dict(self.headers(talk)),
                timeout=PATIENCE_S,
                trust_env=False,
            ) as stream:
                for line in stream.iter_lines():
                    word = _word(line)
                    first_s = first_s or (time.perf_counter() if word else 0.0)
                    whole += word
        except httpx.HTTPError as error:
            raise Unanswered(str(error)) from error
        if not whole.rstrip().endswith((ANSWER, ADDED)):
            raise Unanswered(f"{self.name} answered {stream.status_code} {whole[-200:]!r}")
        return (first_s - begun_s) * 1000

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.origin}{self.ready}", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


def _word(line: str) -> str:
    """What this line of a stream adds to the answer."""
    if not line.startswith("data: {"):
        return ""
    choices = json.loads(line[6:]).get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or ""


def bare(folder: Path, model: ScriptedServer) -> ApiSubject:
    """The bare program, beside which everything is weighed."""
    home = folder / "bare"
    words = (model.base_url, model.api_key, str(home / "bare.db"))
    return ApiSubject(
        name="bare",
        home=home,
        command=lambda port: (sys.executable, "-m", "tests.bench.weight.bare_program", str(port), *words),
        environment={"PYTHONPATH": str(ROOT)},
    )
