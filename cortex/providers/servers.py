"""The one table of model servers: what each takes, gives and says, by its own documents. A new server is a row.

Read by the wire (`chat.py`, `responses.py`, `messages.py`), by what is refused (`rejections.py`), by the lists of
models (`lists.py`), by the Models page, which offers the rows, and by docs/models.md, which shows them.
"""

import re
from urllib.parse import urlsplit, urlunsplit

from cortex.providers.server_row import ServerRow

_ANY_REASONING = ("reasoning_content", "reasoning_details", "reasoning")
OTHER = ServerRow(
    id="other", label="Other", reasoning=_ANY_REASONING, goes_back=(*_ANY_REASONING, "extra_content"),
    cached=("prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens"),
    note="Any server with OpenAI's API: everything is looked for, and what it said goes back to it.",
    sources=("https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/utils/overflow.ts",),
    read="2026-11-27",
)  # fmt: skip

_GPT_SEES = r"^(gpt-(4o|4\.1|4\.5|4-turbo|[5-9])|chatgpt-4o|o1(?!-(mini|preview))|o3(?!-mini)|o4)"

# fmt: off
SERVERS: tuple[ServerRow, ...] = (
    ServerRow(
        id="openrouter", label="OpenRouter", base_url="https://openrouter.ai/api/v1", hosts=r"(^|\.)openrouter\.ai$",
        keys_url="https://openrouter.ai/settings/keys", headers={"X-Title": "Cortex"},
        call_ids="short", reasoning=("reasoning_details", "reasoning"), goes_back=("reasoning_details",),
        says={"tools": r"support tool use", "pictures": r"support image input",
              "window": r"maximum context length is (?P<window>[\d,]*\d)", "model": r"is not a valid model id",
              "credit": r"insufficient credits|requires more credits.{0,120}can only afford (?P<output>[\d,]*\d)",
              "filtered": r"requires moderation|was flagged", "overloaded": r"temporarily rate-limited upstream"},
        note="Sends on to many makers. A model with reasoning refuses a history from which its details are gone.",
        sources=("https://openrouter.ai/docs/use-cases/reasoning-tokens",
                 "https://openrouter.ai/docs/api/reference/errors-and-debugging",
                 "https://github.com/openclaw/openclaw/pull/875",
                 "https://github.com/continuedev/continue/issues/11154"),
        read="2026-11-27",
    ),
    ServerRow(
        id="openai", label="OpenAI", base_url="https://api.openai.com/v1", hosts=r"(^|\.)openai\.com$",
        keys_url="https://platform.openai.com/api-keys", protocols=("chat", "responses"), order="any",
        call_ids="short", calls="pieces", output_limit="max_completion_tokens", reasoning=(),
        says={"window": r"maximum context length is (?P<window>[\d,]*\d)|context_length_exceeded|exceeds the context w",
              "output": r"supports at most (?P<output>[\d,]*\d) completion tokens", "model": r"model_not_found",
              "parameter": r"unsupported (?:parameter|value): '(?P<name>[\w.]+)'", "credit": r"insufficient_quota",
              "schema": r"invalid schema for function '(?P<name>[\w-]+)'", "filtered": r"invalid_prompt|content_policy",
              "pictures": r"image_url is only supported by", "overloaded": r"currently overloaded|server_overloaded"},
        sees=_GPT_SEES,
        note="Chat shows no reasoning. Responses gives it encrypted, and wants each item back as it came.",
        sources=("https://platform.openai.com/docs/guides/error-codes", "https://github.com/simonw/llm/issues/724",
                 "https://github.com/agno-agi/agno/issues/5382", "https://github.com/autohandai/code-cli/issues/77"),
        read="2026-11-27",
    ),
    ServerRow(
        id="anthropic", label="Anthropic", base_url="https://api.anthropic.com", hosts=r"(^|\.)anthropic\.com$",
        keys_url="https://console.anthropic.com/settings/keys", protocols=("messages",), call_ids="safe",
        calls="pieces", headers={"anthropic-version": "2026-10-21"}, key_header="x-api-key",
        reasoning=("thinking",), goes_back=("thinking", "redacted_thinking"),
        cached=("cache_read_input_tokens",), written=("cache_creation_input_tokens",),
        models_at=("v1/models?limit=1000",),
        says={"window": r"(?:prompt is too long: \d+ tokens|exceed context limit: \d+ \+ \d+) > (?P<window>[\d,]*\d)",
              "output": r"max_tokens: \d+ > (?P<output>[\d,]*\d)", "schema": r"tools\.(?P<index>\d+)\.",
              "thinking": r"signature. in .thinking|(?:redacted_)?thinking.{0,90}(?:cannot be modified|but found)",
              "credit": r"credit balance is too low", "overloaded": r"overloaded",
              "model": r"not_found_error.*model:|\bmodel: \S+ .*not_found_error",
              "filtered": r"blocked by content filtering"},
        note="Input tokens are counted without the cached ones. A changed signature is refused.",
        sources=("https://platform.claude.com/docs/build-with-claude/thinking",
                 "https://docs.claude.com/en/api/errors", "https://portkey.ai/error-library/input-length-error-10152",
                 "https://portkey.ai/error-library/input-limit-exceeded-error-10155"),
        read="2026-11-27",
    ),
    ServerRow(
        id="google", label="Google Gemini", base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        hosts=r"(^|\.)generativelanguage\.googleapis\.com$", keys_url="https://aistudio.google.com/apikey",
        omits=frozenset({"parallel_tool_calls"}), reasoning=(), goes_back=("extra_content",), names_results=True,
        stand_ins=((r"^(?!gemini-[12]\.)", "calls.extra_content.google.thought_signature",
                    "skip_thought_signature_validator"),),
        calls="whole", sees=r"^gemini-",
        says={"window": r"exceeds the maximum number of tokens allowed \(?(?P<window>[\d,]*\d)",
              "thinking": r"thought.signature", "schema": r"function_declarations\[(?P<index>\d+)\]",
              "parameter": r"unknown name \W+(?P<name>\w+)",
              "model": r"models/\S+ is not (?:found|supported)", "tools": r"function calling is not enabled",
              "credit": r"prepayment credits are depleted", "filtered": r"prohibited_content",
              "overloaded": r"overloaded|resource_exhausted|exceeded your current quota"},
        note="Gemini 3 refuses a call without its signature; of several the first has it. An error comes in a list.",
        sources=("https://ai.google.dev/gemini-api/docs/thought-signatures",
                 "https://github.com/continuedev/continue/pull/8865",
                 "https://github.com/NousResearch/hermes-agent/pull/19728",
                 "https://github.com/jackmpcollins/magentic/pull/382"),
        read="2026-11-27",
    ),
    ServerRow(
        id="mistral", label="Mistral", base_url="https://api.mistral.ai/v1", hosts=r"(^|\.)mistral\.ai$",
        keys_url="https://console.mistral.ai/api-keys", call_ids="nine", order="strict", reasoning=(),
        omits=frozenset({"stream_options"}),
        says={"window": r"too large for model with (?P<window>[\d,]*\d) maximum context", "ids": r"tool call id was",
              "order": r"expected last role|unexpected role|not the same number of function calls|not both",
              "thinking": r"reasoning_content", "model": r"invalid model", "tools": r"function calling is not enabled",
              "parameter": r"\Wbody\W+(?P<name>\w+)\W+msg\W+extra inputs", "overloaded": r"capacity exceeded"},
        note="Refuses each field that it does not know. Reasoning stands in the content, as parts of type thinking.",
        sources=("https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py",
                 "https://github.com/openai/openai-agents-python/issues/442",
                 "https://github.com/editor-code-assistant/eca/issues/231",
                 "https://github.com/charmbracelet/crush/issues/1590"),
        read="2026-11-27",
    ),
    ServerRow(
        id="groq", label="Groq", base_url="https://api.groq.com/openai/v1", hosts=r"(^|\.)groq\.com$",
        keys_url="https://console.groq.com/keys", order="any", output_limit="max_completion_tokens",
        reasoning=("reasoning",),
        says={"thinking": r"property 'reasoning\w*' is unsupported|\.reasoning: reasoning is not supported",
              "window": r"reduce the length of the messages|tokens per min\w* \(tpm\): limit (?P<window>[\d,]*\d), req",
              "output": r"max_(?:completion_)?tokens\W+must be less than or equal to \W*(?P<output>[\d,]*\d)",
              "tools": r"tool calling. is not supported", "pictures": r"content must be a string",
              "model": r"model_not_found|model_decommissioned", "overloaded": r"over capacity"},
        note="Refuses reasoning that is sent back under another name, and by a model that has none under any.",
        sources=("https://console.groq.com/docs/api-reference", "https://console.groq.com/docs/reasoning",
                 "https://github.com/janhq/jan/issues/8136", "https://github.com/vercel/ai/pull/8057"),
        read="2026-11-27",
    ),
    ServerRow(
        id="deepseek", label="DeepSeek", base_url="https://api.deepseek.com/v1", hosts=r"(^|\.)deepseek\.com$",
        keys_url="https://platform.deepseek.com/api_keys", omits=frozenset({"tool_choice=required"}),
        reasoning=("reasoning_content",), goes_back=("reasoning_content",), stand_ins=(("", "reasoning_content", " "),),
        cached=("prompt_cache_hit_tokens", "prompt_tokens_details.cached_tokens"),
        says={"window": r"maximum context length is (?P<window>[\d,]*\d)", "filtered": r"content exists risk",
              "output": r"valid range of max_tokens is \[1, ?(?P<output>[\d,]*\d)\]", "credit": r"insufficient balance",
              "thinking": r"reasoning_content", "parameter": r"does not support this (?P<name>tool_choice)",
              "pictures": r"unknown variant .?image_url", "model": r"model not exist", "overloaded": r"too busy"},
        note="V4 thinks unless told not to, and then refuses a history in which an answer's reasoning_content is empty "
             "or missing; before V3.2 deepseek-reasoner refused the field. While it thinks, no call can be forced.",
        sources=("https://api-docs.deepseek.com/guides/thinking_mode", "https://api-docs.deepseek.com/guides/kv_cache",
                 "https://github.com/NousResearch/hermes-agent/pull/18263",
                 "https://github.com/deepseek-ai/DeepSeek-V3/issues/1376"),
        read="2026-11-27",
    ),
    ServerRow(
        id="xai", label="xAI", base_url="https://api.x.ai/v1", hosts=r"(^|\.)x\.ai$", keys_url="https://console.x.ai",
        protocols=("chat", "responses"), order="any", output_limit="max_completion_tokens",
        reasoning=("reasoning_content",), models_at=("language-models", "models"),
        says={"window": r"maximum prompt length is (?P<window>[\d,]*\d)", "filtered": r"violates usage guidelines",
              "credit": r"used all available credits|monthly spending limit|doesn't have any credits",
              "parameter": r"(?:argument not supported.{0,30}: |not support parameter )(?P<name>\w+)",
              "pictures": r"image inputs? (?:is|are) not supported",
              "model": r"model \S+ (?:does not exist|not found)"},
        note="Calls chat deprecated: Responses, with its encrypted reasoning sent back, answers better.",
        sources=("https://docs.x.ai/developers/model-capabilities/text/best-practices",
                 "https://docs.x.ai/developers/advanced-api-usage/troubleshooting-reasoning",
                 "https://raw.githubusercontent.com/api-evangelist/xai/refs/heads/main/openapi/xai-language-models-api-openapi.yml"),
        read="2026-11-27",
    ),
    ServerRow(
        id="together", label="Together", base_url="https://api.together.xyz/v1", hosts=r"(^|\.)together\.(xyz|ai)$",
        keys_url="https://api.together.ai/settings/api-keys", reasoning=("reasoning", "reasoning_content"),
        cached=("cached_tokens", "prompt_tokens_details.cached_tokens"),
        says={"window": r"(?:max_new_tokens.? must be <=|maximum context length is) (?P<window>[\d,]*\d)",
              "model": r"unable to access (?:non-serverless )?model|model_not_available", "credit": r"credit limit",
              "tools": r"not supported for json mode/function calling", "overloaded": r"overloaded|model is busy"},
        note="The list is a bare array, with dollars for a million tokens.",
        sources=("https://docs.together.ai/docs/error-codes",
                 "https://github.com/togethercomputer/together-python/blob/main/src/together/types/models.py",
                 "https://github.com/expectedparrot/edsl/issues/2098"),
        read="2026-11-27",
    ),
    ServerRow(
        id="azure", label="Azure OpenAI", example="https://NAME.openai.azure.com",
        hosts=r"\.(openai|services\.ai|cognitiveservices)\.azure\.(com|us|cn)$",
        keys_url="https://ai.azure.com", protocols=("chat", "responses"), key_header="api-key", order="any",
        call_ids="short", output_limit="max_completion_tokens", reasoning=("reasoning_content",),
        models_at=("../deployments?api-version=2023-03-15-preview", "models"),
        says={"window": r"maximum context length is (?P<window>[\d,]*\d)|context_length_exceeded",
              "filtered": r"content management policy|responsibleaipolicy|content_filter",
              "model": r"deploymentnotfound|deployment for this resource does not exist|unknown_model",
              "parameter": r"unsupported (?:parameter|value): '(?P<name>[\w.]+)'|unrecognized request argument"},
        sees=_GPT_SEES,
        path="/openai/v1", query={"/openai/deployments/": "api-version=2024-10-21"},
        note="A model is asked for by the name of its deployment, under /openai/v1 of the resource; an address of the "
             "older /openai/deployments gets an api-version.",
        sources=("https://learn.microsoft.com/en-us/azure/foundry-classic/openai/api-version-lifecycle",
                 "https://learn.microsoft.com/en-us/azure/foundry/foundry-models/concepts/endpoints",
                 "https://github.com/langflow-ai/langflow/pull/14509",
                 "https://github.com/openai/openai-python/issues/447"),
        read="2026-11-27",
    ),
    ServerRow(
        id="ollama", label="Ollama", base_url="http://127.0.0.1:11434/v1", hosts=r"(^|\.)ollama\.com$", is_local=True,
        reasoning=("reasoning",), goes_back=("reasoning",), calls="whole", cached=(), more_at=("../api/tags",),
        says={"window": r"exceed\w* (?:max|the) context", "tools": r"does not support tools",
              "model": r"model .{1,160}not found",
              "thinking": r"does not support thinking", "pictures": r"missing data required for image",
              "overloaded": r"maximum pending requests|server busy"},
        note="Cuts silently what is longer than the context that it serves. tool_choice is not read.",
        sources=("https://github.com/ollama/ollama/blob/main/openai/openai.go",
                 "https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx",
                 "https://github.com/ollama/ollama/issues/5793"),
        read="2026-11-27",
    ),
    ServerRow(
        id="lmstudio", label="LM Studio", base_url="http://127.0.0.1:1234/v1", is_local=True,
        order="strict", mixes_calls=True, more_at=("../api/v0/models", "../api/v1/models"),
        says={"window": r"(?:context length of only|than the context length .{0,40}n_ctx:) ?(?P<window>[\d,]*\d)",
              "pictures": r"does not support images", "model": r"no models? loaded|model .{1,160}not found"},
        note="Only a loaded model has the context that it is served with; the rest have a longest one.",
        sources=("https://lmstudio.ai/docs/api/rest-api",
                 "https://github.com/lmstudio-ai/docs/blob/main/1_developer/2_rest/list.md",
                 "https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1541",
                 "https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/utils/overflow.ts"),
        read="2026-11-27",
    ),
    ServerRow(
        id="llamacpp", label="llama.cpp", base_url="http://127.0.0.1:8080/v1", is_local=True,
        order="strict", reasoning=("reasoning_content",), goes_back=("reasoning_content",), mixes_calls=True,
        more_at=("../props",),
        says={"window": r"available context size \((?P<window>[\d,]*\d)|exceed_context_size|available context size",
              "order": r"must alternate|system message must be|system role not supported|no user query found",
              "tools": r"tools param requires|unable to generate parser", "schema": r"json schema conversion failed",
              "pictures": r"image input is not supported|mmproj", "overloaded": r"loading model|no slots? available"},
        note="The context of /props is that of one slot. A template without tools drops them silently.",
        sources=("https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md",
                 "https://github.com/ggml-org/llama.cpp/issues/14697",
                 "https://github.com/badlogic/pi-mono/blob/main/packages/ai/src/utils/overflow.ts"),
        read="2026-11-27",
    ),
    ServerRow(
        id="vllm", label="vLLM", base_url="http://127.0.0.1:8000/v1", is_local=True,
        order="strict", reasoning=("reasoning", "reasoning_content"), goes_back=("reasoning", "reasoning_content"),
        says={"window": r"maximum context length is (?P<window>[\d,]*\d)", "model": r"model .{1,160} does not exist",
              "tools": r"enable-auto-tool-choice", "pictures": r"not a multimodal model|at most 0 image",
              "order": r"must alternate|system role not supported", "schema": r"not supported by xgrammar"},
        note="What order of speakers it takes is its model's template's: that of Mistral's is kept to. Reasoning was "
             "reasoning_content before 2026.",
        sources=("https://github.com/vllm-project/vllm/blob/main/docs/features/reasoning_outputs.md",
                 "https://github.com/vllm-project/vllm/pull/27752",
                 "https://github.com/vllm-project/vllm/issues/38488",
                 "https://huggingface.co/amd/Mistral-7B-Instruct-v0.3-onnx-ryzenai-hybrid/blob/main/chat_template.jinja"),
        read="2026-11-27",
    ),
    ServerRow(
        id="litellm", label="LiteLLM", base_url="http://127.0.0.1:4000/v1", is_local=True,
        reasoning=("thinking_blocks", "reasoning_content"), goes_back=("thinking_blocks",),
        more_at=("../model/info",),
        says={"window": r"contextwindowexceedederror", "filtered": r"contentpolicyviolationerror",
              "parameter": r"(?:not support parameters: \[\W|models don't support )(?P<name>\w+)",
              "model": r"invalid model name passed",
              "credit": r"budget has been exceeded|budget_exceeded", "overloaded": r"no deployments available"},
        note="Sends on to many makers; ids of calls hold what Google wants back.",
        sources=("https://github.com/BerriAI/litellm/blob/main/docs/my-website/docs/reasoning_content.md",
                 "https://github.com/BerriAI/litellm/blob/main/docs/my-website/docs/proxy/model_management.md",
                 "https://github.com/BerriAI/litellm/blob/main/litellm/litellm_core_utils/exception_mapping_utils.py"),
        read="2026-11-27",
    ),
)
# fmt: on


def server_of(base_url: str, *, engine: str = "") -> ServerRow:
    """The row of this address, by its host or by what the server called itself (`engine`); `OTHER` without one.

    `base_url` "": OpenAI's own.
    """
    if not base_url:
        return by_id("openai")
    host = (urlsplit(base_url).hostname or "").lower()
    found = next((row for row in SERVERS if row.hosts and re.search(row.hosts, host)), None)
    return found or by_id(engine)


def by_id(server_id: str) -> ServerRow:
    """The row of this id; `OTHER` without one."""
    return next((row for row in SERVERS if row.id == server_id), OTHER)


def headers_of(row: ServerRow, key: str) -> dict[str, str]:
    """Return what every request to this server sends besides its body: the key, "" for none, where the row wants it."""
    held = {row.key_header: key} if row.key_header else {"Authorization": f"Bearer {key}"}
    return {**row.headers, **(held if key else {})}


def base_of(row: ServerRow, base_url: str) -> str:
    """The base address of its API, whatever was copied at a host whose path is always the same."""
    parts = urlsplit(base_url)
    is_its_own = row.path and re.search(row.hosts, (parts.hostname or "").lower())
    return f"{parts.scheme}://{parts.netloc}{row.path}" if is_its_own else base_url.rstrip("/")


def asked_at(row: ServerRow, base_url: str) -> str:
    """The base address of its requests, behind a `?` what the server wants there."""
    asked = next((query for part, query in row.query.items() if part in f"{base_url}/"), "")
    return f"{base_url}?{asked}" if asked else base_of(row, base_url)


def at(base_url: str, path: str) -> str:
    """The address of a path below this one; what stands behind `?` stays at the end."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))
