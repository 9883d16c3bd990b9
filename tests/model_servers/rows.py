"""The rows: one for each server people have, with what it takes and how it answers; `ROWS` is all of them.

What is special about a server stands in its row, with its source in `words.py`, `more_words.py` or at the rule.
`without`: scenes that this server does not run, each with the reason. Read 2026-11-27.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.model_servers import strict_chat as chat
from tests.model_servers.spoken import Manner

BASE: tuple[chat.Rule, ...] = (chat.shape, chat.answered)
STRICT: tuple[chat.Rule, ...] = (*BASE, chat.tools, chat.body_fields)


def names(text: str) -> frozenset[str]:
    """The fields named in a text."""
    return frozenset(text.split())


# platform.openai.com/docs/api-reference/chat/create
OPENAI_FIELDS = names(
    "model messages tools tool_choice parallel_tool_calls stream stream_options max_tokens "
    "max_completion_tokens temperature top_p seed user stop prompt_cache_key reasoning_effort "
    "frequency_penalty presence_penalty response_format n metadata store service_tier verbosity logprobs "
    "top_logprobs modalities"
)
# docs.mistral.ai/api, github.com/openai/openai-agents-python/issues/442: no stream_options, no max_completion_tokens
MISTRAL_FIELDS = names(
    "model messages tools tool_choice parallel_tool_calls stream max_tokens temperature top_p random_seed "
    "stop frequency_penalty presence_penalty response_format n metadata prediction prompt_mode safe_prompt "
    "reasoning_effort"
)
# ai.google.dev/gemini-api/docs/openai
GOOGLE_FIELDS = OPENAI_FIELDS - {"prompt_cache_key", "store", "metadata", "user", "verbosity"} | {"extra_body"}
# console.groq.com/docs/api-reference
GROQ_FIELDS = OPENAI_FIELDS - {"prompt_cache_key", "modalities", "verbosity"} | {"reasoning_format"}

_NO_CHUNKS = "its calls come in items or blocks of their own, not in numbered pieces"
_NOT_CHAT = "its stream has named events, no finish reason in a choice"
CHAT_ONLY = {
    **dict.fromkeys(("careless_zero", "careless_none", "careless_first_id", "careless_empty_ids"), _NO_CHUNKS),
    **dict.fromkeys(
        ("finish_missing", "finish_odd", "marks_in_text", "no_usage", "odd_chunks", "odd_calls"), _NOT_CHAT
    ),
}
_OWN_IDS = "it never uses an id twice"
_NO_BODY = "its documents name no such answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A server. `engine`: its row in Cortex's own table. `path`: of its base URL. `late`: its way with late tools.

    `thinker`: a model that reasons, "" where none does. `settings`: of its entry, for that model.
    `wants_back`: what of its reasoning must stand in the next request of a turn with calls, unread.
    `window_in`: how it says "too long": `error`, `silent` (the beginning is cut away), `stream` (an error event).
    """

    id: str
    engine: str = ""
    wire: Literal["chat", "responses", "messages"] = "chat"
    path: str = "/v1"
    model: str = "model-1"
    thinker: str = ""
    thinker_settings: tuple[tuple[str, str], ...] = ()
    late: Literal["native", "bridge", "stubs", "rewrite"] = "rewrite"
    manner: Manner = field(default_factory=Manner)
    rules: tuple[chat.Rule, ...] = BASE
    fields: frozenset[str] | None = None
    message_fields: frozenset[str] = frozenset()
    key_header: Literal["authorization", "api-key", "x-api-key"] = "authorization"
    wants_back: tuple[Literal["words", "signature"], ...] = ()
    window_in: Literal["error", "silent", "stream"] = "error"
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def provider(self) -> str:
        """The kind of its entry."""
        return "anthropic" if self.wire == "messages" else "openai"

    def with_model(self, model: str) -> "Row":
        """The same server with another reasoning model."""
        return replace(self, thinker=model)


def _without(*names: str, why: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**dict.fromkeys(names, why), **(more or {})}


_NONE_THINKS = _without(
    "thinking_answer",
    "thinking_with_tools",
    "thinking_in_history",
    why="it does not tell its reasoning in chat completions",
)
_LOCAL = _without("no_credit", why="it runs at home, nobody pays")
_LOCAL_PROXY = {**_LOCAL, "schema_refused": "its template takes any schema", "filtered": "it filters nothing"}
_NO_LIMIT = {"output_limit": "it cuts the number of output tokens silently"}
_NO_PARAMETER = {"parameter_refused": "it takes or ignores the parameters that Cortex sends"}

ROWS: tuple[Row, ...] = (
    Row(
        id="openai",
        engine="openai",
        model="gpt-4.1",
        manner=Manner(),
        rules=(*STRICT, chat.long_ids),
        fields=OPENAI_FIELDS,
        without=_NONE_THINKS,
    ),
    Row(
        id="responses",
        wants_back=("signature",),
        engine="openai",
        wire="responses",
        model="gpt-5.4",
        thinker="gpt-5.4",
        late="native",
        without={**CHAT_ONLY, "ids_used_twice": _OWN_IDS},
    ),
    Row(
        id="anthropic",
        wants_back=("words",),
        engine="anthropic",
        wire="messages",
        path="",
        model="claude-opus-5",
        thinker="claude-sonnet-4-5",
        thinker_settings=(("thinking", "true"),),
        late="native",
        key_header="x-api-key",
        without={**CHAT_ONLY, "ids_used_twice": _OWN_IDS, "says_no_tools": "every model of it takes tools"},
    ),
    Row(
        id="openrouter",
        wants_back=("words", "signature"),
        engine="openrouter",
        path="/api/v1",
        model="meta-llama/llama-4-maverick",
        thinker="google/gemini-3-pro-preview",
        manner=Manner(thinks="details", ids="tool_{tool}_{n}"),
        rules=(*BASE, chat.tools, chat.openrouter_details),
        message_fields=frozenset({"reasoning", "reasoning_details"}),
        without={"output_limit": "it lowers the number to what the model gives", **_NO_PARAMETER},
    ),
    Row(
        id="google",
        wants_back=("signature",),
        engine="google",
        path="/v1beta/openai",
        model="gemini-3-flash-preview",
        thinker="gemini-3-flash-preview",
        manner=Manner(is_signed=True, ids="function-call-{n:019d}", is_whole=True, cached=()),
        rules=(*STRICT, chat.gemini_order, chat.gemini_signatures, chat.gemini_schemas),
        fields=GOOGLE_FIELDS,
        without={
            "cached_usage": "its compatible endpoint does not tell cached tokens",
            "thinking_answer": "it tells its thoughts only when asked by a parameter of its own",
            "thinking_in_history": "it tells its thoughts only when asked by a parameter of its own",
            "output_limit": "it lowers the number to what the model gives",
            "filtered": "it ends the answer with a finish reason: see `filtered_in_the_middle`",
            **_NO_PARAMETER,
        },
    ),
    Row(
        id="mistral",
        engine="mistral",
        model="mistral-medium-3.5",
        thinker="magistral-medium-latest",
        manner=Manner(ids="{n:09d}", is_whole=True, is_together=True, usage="finish", thinks="chunks"),
        rules=(
            *BASE,
            chat.body_fields,
            chat.message_fields,
            chat.mistral_order,
            chat.nine_ids,
            chat.nothing_said,
        ),
        fields=MISTRAL_FIELDS,
        without={
            "no_credit": _NO_BODY,
            "filtered": _NO_BODY,
            "schema_refused": _NO_BODY,
            "output_limit": "it lowers the number to what the model gives",
            **_NO_PARAMETER,
        },
    ),
    Row(
        id="groq",
        engine="groq",
        path="/openai/v1",
        model="llama-3.3-70b-versatile",
        thinker="openai/gpt-oss-120b",
        manner=Manner(thinks="reasoning", usage="x_groq", is_whole=True, ids="fc_{n:024d}"),
        rules=(*STRICT, chat.groq_reasoning, chat.message_fields),
        fields=GROQ_FIELDS,
        message_fields=frozenset({"reasoning"}),
        without={"no_credit": "it has free tiers and rate limits, no balance", "filtered": "it filters nothing"},
    ),
    Row(
        id="deepseek",
        wants_back=("words",),
        engine="deepseek",
        path="",
        model="deepseek-v4-pro",
        thinker="deepseek-v4-pro",
        manner=Manner(
            thinks="reasoning_content",
            cached=("prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens"),
            usage="finish",
            ids="call_00_{n:020d}",
        ),
        rules=(*BASE, chat.tools, chat.deepseek_reasoning),
        without=_NO_PARAMETER,
    ),
    Row(
        id="xai",
        engine="xai",
        model="grok-4.5",
        thinker="grok-4.5",
        manner=Manner(thinks="reasoning_content", is_whole=True, usage="each"),
        rules=(*BASE, chat.tools),
        without={
            **dict.fromkeys(("filtered", "schema_refused", "output_limit"), _NO_BODY),
            "says_no_tools": "every model of it takes tools",
        },
    ),
    Row(
        id="together",
        engine="together",
        model="meta-llama/Llama-4-Maverick",
        thinker="openai/gpt-oss-120b",
        manner=Manner(thinks="reasoning", usage="finish", cached=("cached_tokens",)),
        rules=(*BASE, chat.tools),
        without={
            "filtered": "it filters nothing",
            "output_limit": "it refuses the sum with the request: see `too_long`",
            **_NO_PARAMETER,
        },
    ),
    Row(
        id="azure",
        engine="azure",
        path="/openai/v1",
        model="gpt-4.1",
        manner=Manner(has_empty_first=True),
        rules=(*STRICT, chat.long_ids),
        fields=OPENAI_FIELDS,
        key_header="api-key",
        without={**_NONE_THINKS, "no_credit": "the bill comes later"},
    ),
    Row(
        id="ollama",
        engine="ollama",
        model="qwen3:8b",
        thinker="qwen3:8b",
        manner=Manner(thinks="reasoning", is_whole=True, numbering="zero", ids="call_{n:08d}", cached=()),
        rules=(*BASE, chat.arguments),
        window_in="silent",
        without={
            **_LOCAL_PROXY,
            **_NO_LIMIT,
            **_NO_PARAMETER,
            "cached_usage": "it does not tell cached tokens",
            "too_long": "it cuts the beginning away silently: see `cut_silently`",
            "too_long_in_stream": "it cuts the beginning away silently: see `cut_silently`",
        },
    ),
    Row(
        id="lmstudio",
        engine="lmstudio",
        model="qwen/qwen3-8b",
        thinker="qwen/qwen3-8b",
        manner=Manner(thinks="reasoning_content", ids="{n:09d}", cached=()),
        rules=(*BASE, chat.arguments, chat.system_first),
        window_in="stream",
        without={
            **_LOCAL_PROXY,
            **_NO_LIMIT,
            **_NO_PARAMETER,
            "cached_usage": "it does not tell cached tokens",
            "says_no_tools": "it writes the tools into the prompt of any model",
            "overloaded": "it lets requests wait, however many",
        },
    ),
    Row(
        id="llamacpp",
        engine="llamacpp",
        model="qwen3-8b",
        thinker="qwen3-8b",
        manner=Manner(thinks="reasoning_content", ids="call{n:028d}"),
        rules=(*BASE, chat.arguments, chat.system_first),
        without={**_LOCAL_PROXY, **_NO_LIMIT, **_NO_PARAMETER, "unknown_model": "it has one model and takes any name"},
    ),
    Row(
        id="vllm",
        engine="vllm",
        model="mistralai/Mistral-7B-Instruct-v0.3",
        thinker="Qwen/Qwen3-8B",
        manner=Manner(thinks="reasoning_content", ids="chatcmpl-tool-{n:032d}"),
        rules=(*BASE, chat.tools, chat.arguments, chat.alternates, chat.system_first),
        without={**_LOCAL_PROXY, **_NO_PARAMETER, "overloaded": "it lets requests wait, however many"},
    ),
    Row(
        id="litellm",
        wants_back=("words", "signature"),
        engine="litellm",
        path="",
        model="house-model",
        thinker="house-claude",
        manner=Manner(thinks="blocks"),
        rules=(*BASE, chat.tools, chat.arguments, chat.litellm_blocks),
    ),
    Row(
        id="other",
        engine="",
        model="model-1",
        thinker="model-1-thinking",
        manner=Manner(thinks="reasoning_content"),
        rules=(*BASE, chat.tools),
        without=_NO_PARAMETER,
    ),
)


def row_of(row_id: str) -> Row:
    """The row of this id."""
    return next(row for row in ROWS if row.id == row_id)


def settings_of(row: Row, model: str) -> tuple[tuple[str, str], ...]:
    """Parameters of the entry of this model."""
    return row.thinker_settings if model == row.thinker else ()
