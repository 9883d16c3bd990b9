"""Servers that list their models, each in the form that its maker documents: a scripted one on 127.0.0.1.

The forms are those of the makers' references, read in November 2026: OpenAI, OpenRouter, Anthropic (in pages), Mistral,
Groq, Google, Together, xAI, Azure (deployments and models), vLLM, Ollama (tags and show), LM Studio (v0 and v1),
llama.cpp (models and props, of one model and of several), LiteLLM (models and info).
"""

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Self

from tests.patience import PATIENCE_S

Page = tuple[int, Any] | tuple[int, Any, dict[str, str]]


def openai_row(name: str, created: int = 1_700_000_000, owner: str = "system", **more: Any) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": owner, **more}


def whole(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(rows)}


OPENAI = whole(
    openai_row("gpt-4o-mini", 1_721_172_741),
    openai_row("gpt-5-mini", 1_754_425_928),
    openai_row("text-embedding-3-small", 1_705_948_997),
    openai_row("whisper-1", 1_677_532_384, "openai-internal"),
    openai_row("gpt-image-1", 1_745_517_030),
)


def openrouter_row(name: str, created: int, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "canonical_slug": name,
        "name": name.partition("/")[2].title(),
        "created": created,
        "description": "A model.",
        "context_length": 200_000,
        "architecture": {
            "modality": "text+image->text",
            "input_modalities": ["image", "text"],
            "output_modalities": ["text"],
            "tokenizer": "Claude",
            "instruct_type": None,
        },
        "pricing": {
            "prompt": "0.000003",
            "completion": "0.000015",
            "request": "0",
            "image": "0.0048",
            "input_cache_read": "0.0000003",
            "input_cache_write": "0.00000375",
        },
        "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000, "is_moderated": False},
        "per_request_limits": None,
        "supported_parameters": ["include_reasoning", "max_tokens", "reasoning", "temperature", "tool_choice", "tools"],
        **more,
    }


OPENROUTER = {
    "data": [
        openrouter_row("anthropic/claude-sonnet-4.5", 1_759_161_676),
        openrouter_row(
            "google/gemma-3n-e4b-it:free",
            1_747_776_824,
            context_length=8_192,
            architecture={"input_modalities": ["text"], "output_modalities": ["text"]},
            pricing={"prompt": "0", "completion": "0"},
            supported_parameters=["max_tokens", "temperature"],
            top_provider={"context_length": 8_192, "max_completion_tokens": 2_048, "is_moderated": False},
        ),
        openrouter_row("openrouter/auto", 1_699_401_600, pricing={"prompt": "-1", "completion": "-1"}),
        openrouter_row(
            "black-forest/flux",
            1_700_000_000,
            architecture={"input_modalities": ["text"], "output_modalities": ["image"]},
        ),
    ]
}
MISTRAL = whole(
    openai_row(
        "mistral-small-latest",
        owner="mistralai",
        capabilities={"completion_chat": True, "function_calling": True, "vision": True, "reasoning": False},
        max_context_length=131_072,
        aliases=["mistral-small-2506"],
        deprecation=None,
        type="base",
    ),
    openai_row(
        "mistral-embed",
        owner="mistralai",
        capabilities={"completion_chat": False, "function_calling": False, "vision": False},
        max_context_length=8_192,
        type="base",
    ),
)
GROQ = whole(
    openai_row("openai/gpt-oss-20b", owner="OpenAI", active=True, context_window=131_072, max_completion_tokens=65_536),
    openai_row("whisper-large-v3", owner="OpenAI", active=True, context_window=448, max_completion_tokens=448),
    openai_row("gone-8b", owner="Meta", active=False, context_window=8_192, max_completion_tokens=8_192),
)
GEMINI = whole(
    {"id": "models/gemini-2.5-flash", "object": "model", "owned_by": "google", "display_name": "Gemini 2.5 Flash"},
    {"id": "models/gemini-embedding-001", "object": "model", "owned_by": "google"},
)
VLLM = whole(
    openai_row("Qwen/Qwen3-8B", owner="vllm", root="Qwen/Qwen3-8B", parent=None, max_model_len=40_960, permission=[])
)
TOGETHER = [
    {
        **openai_row("Qwen/Qwen3-235B-A22B", 1_753_000_000),
        "type": "chat",
        "display_name": "Qwen3 235B",
        "organization": "Qwen",
        "context_length": 262_144,
        "pricing": {"hourly": 0, "input": 0.2, "output": 0.6, "base": 0, "finetune": 0},
    },
    {
        **openai_row("rented-only", 1_752_000_000),
        "type": "chat",
        "context_length": 32_768,
        "pricing": {"hourly": 0, "input": 0, "output": 0, "base": 0, "finetune": 0},
    },
    {**openai_row("old-base-model"), "type": "language", "pricing": {"input": 0.1, "output": 0.1}},
    {**openai_row("a-video-model"), "type": "video", "pricing": {}},
]
XAI = {
    "models": [
        {
            **openai_row("grok-3", 1_743_724_800, "xai"),
            "fingerprint": "fp_898ae9f31c",
            "version": "1.0",
            "input_modalities": ["text", "image"],
            "output_modalities": ["text"],
            "prompt_text_token_price": 30_000,
            "cached_prompt_text_token_price": 7_500,
            "prompt_image_token_price": 0,
            "completion_text_token_price": 150_000,
            "search_price": 250_000_000,
            "aliases": ["grok-3-latest"],
        },
        {**openai_row("grok-imagine", owner="xai"), "input_modalities": ["text"], "output_modalities": ["image"]},
    ]
}


def deployment(name: str, model: str, **more: Any) -> dict[str, Any]:
    row = {"id": name, "model": model, "owner": "organization-owner", "status": "succeeded", "object": "deployment"}
    return {**row, "created_at": 1_721_172_741, "scale_settings": {"scale_type": "standard"}, **more}


AZURE_DEPLOYMENTS = whole(
    deployment("our-chat", "gpt-5-mini"),
    deployment("vectors", "text-embedding-3-small"),
    deployment("lost", "gpt-4o", status="failed"),
)


def azure_row(name: str, *, chats: bool) -> dict[str, Any]:
    can = {
        "fine_tune": False,
        "inference": True,
        "completion": False,
        "chat_completion": chats,
        "embeddings": not chats,
    }
    return {"id": name, "object": "model", "status": "succeeded", "capabilities": can, "created_at": 1_721_172_741}


AZURE_MODELS = whole(azure_row("gpt-5-mini", chats=True), azure_row("ada-something", chats=False))
AZURE: dict[str, Page] = {
    "GET /openai/deployments?api-version=2023-03-15-preview": (200, AZURE_DEPLOYMENTS),
    "GET /openai/v1/models": (200, AZURE_MODELS),
}


def litellm_info(name: str, **info: Any) -> dict[str, Any]:
    return {"model_name": name, "litellm_params": {"model": f"openai/{name}"}, "model_info": {"id": name, **info}}


LITELLM: dict[str, Page] = {
    "GET /v1/models": (
        200,
        whole(*(openai_row(name, owner="openai") for name in ("claude", "house", "unknown", "vectors"))),
    ),
    "GET /model/info": (
        200,
        {
            "data": [
                litellm_info(
                    "claude",
                    mode="chat",
                    max_tokens=64_000,
                    max_input_tokens=200_000,
                    max_output_tokens=64_000,
                    input_cost_per_token=3e-06,
                    output_cost_per_token=1.5e-05,
                    cache_read_input_token_cost=3e-07,
                    cache_creation_input_token_cost=3.75e-06,
                    supports_vision=True,
                    supports_function_calling=True,
                    supports_reasoning=True,
                ),
                litellm_info("house", max_input_tokens=32_768, supports_function_calling=True, supports_vision=None),
                litellm_info("house", max_input_tokens=8_192, supports_function_calling=False, supports_vision=None),
                litellm_info("unknown", input_cost_per_token=0, output_cost_per_token=0),
                litellm_info("vectors", mode="embedding", max_input_tokens=8_192),
            ]
        },
    ),
}


def anthropic_row(name: str, **more: Any) -> dict[str, Any]:
    yes, no = {"supported": True}, {"supported": False}
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "2026-02-04T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 200_000,
        "max_tokens": 64_000,
        "capabilities": {"batch": yes, "image_input": yes, "pdf_input": yes, "thinking": yes, "code_execution": no},
        **more,
    }


def anthropic_pages(*names: str) -> dict[str, Page]:
    """A page for each model, one behind the other."""
    pages: dict[str, Page] = {}
    for at, name in enumerate(names):
        after = f"&after_id={names[at - 1]}" if at else ""
        body = {"data": [anthropic_row(name)], "first_id": name, "last_id": name, "has_more": at + 1 < len(names)}
        pages[f"GET /v1/models?limit=1000{after}"] = (200, body)
    return pages


def ollama(loaded: Mapping[str, int] = MappingProxyType({}), **models: dict[str, Any]) -> dict[str, Page]:
    """The pages of Ollama; each model's /api/show is what is given for it (`_` in its name stands for `:`).

    loaded: the models in memory, each with the context that it is served with.
    """
    running = [{"name": name, "model": name, "size_vram": 1, "context_length": size} for name, size in loaded.items()]
    named = {name.replace("_", ":"): shown for name, shown in models.items()}
    tags = [{"name": name, "model": name, "size": 1, "details": {"family": "qwen3"}} for name in named]
    return {
        "GET /v1/models": (200, whole(*(openai_row(name, owner="library") for name in named))),
        "GET /api/tags": (200, {"models": tags}),
        "GET /api/ps": (200, {"models": running}),
        **{f"POST /api/show {name}": (200, shown) for name, shown in named.items()},
    }


QWEN = {
    "capabilities": ["completion", "tools", "thinking"],
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
    "parameters": 'stop                           "<|im_end|>"\ntemperature                    0.6',
}
LLAVA = {
    "capabilities": ["completion", "vision"],
    "model_info": {"general.architecture": "llama", "llama.context_length": 32_768},
    "parameters": "num_ctx                        8192",
}
NOMIC = {"capabilities": ["embedding"], "model_info": {"nomic-bert.context_length": 2_048}}


def studio_row(name: str, kind: str, **more: Any) -> dict[str, Any]:
    row = {"id": name, "object": "model", "type": kind, "publisher": "lmstudio-community", "arch": "qwen2_vl"}
    return {**row, "state": "not-loaded", "max_context_length": 32_768, **more}


LM_STUDIO: dict[str, Page] = {
    "GET /v1/models": (
        200,
        whole(
            *(
                {"id": name, "object": "model", "owned_by": "organization_owner"}
                for name in ("qwen2-vl", "llama", "nomic")
            )
        ),
    ),
    "GET /api/v0/models": (
        200,
        whole(
            studio_row("qwen2-vl", "vlm", state="loaded", loaded_context_length=4_096, capabilities=["tool_use"]),
            studio_row("llama", "llm", max_context_length=131_072),
            studio_row("nomic", "embeddings", max_context_length=2_048),
        ),
    ),
}
LM_STUDIO_NEWER: dict[str, Page] = {
    "GET /v1/models": LM_STUDIO["GET /v1/models"],
    "GET /api/v0/models": (200, {"error": "Unexpected endpoint or method. (GET /api/v0/models)"}),
    "GET /api/v1/models": (
        200,
        {
            "models": [
                {
                    "type": "llm",
                    "key": "qwen2-vl",
                    "display_name": "Qwen2 VL",
                    "loaded_instances": [{"id": "qwen2-vl", "config": {"context_length": 4_096}}],
                    "max_context_length": 32_768,
                    "capabilities": {"vision": True, "trained_for_tool_use": True},
                },
                {
                    "type": "llm",
                    "key": "llama",
                    "display_name": "Llama",
                    "loaded_instances": [],
                    "max_context_length": 131_072,
                    "capabilities": {"vision": False, "trained_for_tool_use": False},
                },
                {"type": "embedding", "key": "nomic", "loaded_instances": [], "max_context_length": 2_048},
            ]
        },
    ),
}
LLAMA_CPP: dict[str, Page] = {
    "GET /v1/models": (
        200,
        whole(openai_row("gemma-3-4b", owner="llamacpp", meta={"n_ctx_train": 131_072, "n_params": 4_000_000_000})),
    ),
    "GET /props": (
        200,
        {
            "default_generation_settings": {"id": 0, "n_ctx": 8_192, "params": {}},
            "total_slots": 1,
            "modalities": {"vision": True, "audio": False},
            "chat_template_caps": {"supports_tools": True},
        },
    ),
}
SMOL_FILE = "/home/otto/tts models/SmolLM2-135M-Instruct.Q4_1.gguf"
LLAMA_CPP_FILE: dict[str, Page] = {
    **LLAMA_CPP,
    "GET /v1/models": (
        200,
        {
            "models": [{"name": SMOL_FILE, "model": SMOL_FILE, "capabilities": ["completion"]}],
            **whole(openai_row(SMOL_FILE, owner="llamacpp", meta={"n_ctx_train": 8_192})),
        },
    ),
}
LLAMA_CPP_SEVERAL: dict[str, Page] = {
    "GET /v1/models": (200, whole(*(openai_row(name, owner="llamacpp") for name in ("org/small:Q4_K_M", "big")))),
    "GET /props": (200, {"role": "router"}),
    "GET /props?model=big&autoload=false": (
        200,
        {"default_generation_settings": {"n_ctx": 32_768}, "chat_template_caps": {"supports_tools": False}},
    ),
}


SPOKEN = {  # of every model that is asked for a sentence
    "id": "c1",
    "object": "chat.completion",
    "created": 0,
    "model": "any",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello there."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}


KEYS = ("Authorization", "x-api-key", "api-key")


@dataclass
class ModelLists:
    """The server; a context manager. `pages`: "METHOD path" -> status, body, headers; a body of bytes goes as it is.

    POST /api/show is looked up with the model's name behind it. `key`: what has to come, "" = nothing has to.
    `hangs`: it takes requests and answers none; `hangs_at`: those of this path. `headers`: in which the keys came;
    `bodies`: what was posted.
    """

    pages: Mapping[str, Page] = field(default_factory=dict)
    key: str = ""
    hangs: bool = False
    hangs_at: str = ""
    asked: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    _closing: threading.Event = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    @property
    def origin(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, key: str, body: bytes) -> Page:
        """Status, body and headers."""
        self.asked.append(f"{method} {path}")
        self.keys.append(key)
        self.bodies += [json.loads(body)] if body else []
        if self.hangs or (self.hangs_at and path == self.hangs_at):
            self._closing.wait(PATIENCE_S)
        if self.key and key != self.key:
            words = f"Incorrect API key provided: {key[:6]}***. You can find your API key at the provider's page."
            return 401, {"error": {"message": words, "type": "invalid_request_error", "code": "invalid_api_key"}}
        if path == "/v1/chat/completions":
            return 200, SPOKEN
        name = f" {json.loads(body)['model']}" if body else ""
        return self.pages.get(f"{method} {path}{name}", (404, {"error": {"message": "no such page"}}))


def _handler(double: ModelLists) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _serve(self, sent: bytes) -> None:
            double.headers.append(next((name for name in KEYS if self.headers.get(name)), ""))
            given = self.headers.get(double.headers[-1] or KEYS[0], "").removeprefix("Bearer ")
            status, body, *more = double.answer(self.command, self.path, given, sent)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"Content-Type": "application/json", **(more[0] if more else {})}
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
