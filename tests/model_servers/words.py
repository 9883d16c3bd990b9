"""In whose words and in which body each server refuses; read 2026-11-27 in documents and public reports, named beside.

A refusal is a kind with its facts; `body_of` gives status, body and headers as the server of that row sends them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# kind -> (status, message, further values of the body)
Words = Mapping[str, tuple[int, str, dict[str, Any]]]
Form = Callable[[int, str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a request is refused. `facts` fill the words; `status` and `message` are the row's where they are empty."""

    kind: str
    facts: Mapping[str, Any]
    message: str = ""
    status: int = 0


def _openai(status: int, message: str, more: dict[str, Any]) -> Any:
    kind = more.get("type", "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": more.get("param"), "code": more.get("code")}}


def _anthropic(status: int, message: str, more: dict[str, Any]) -> Any:
    kinds = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
    kind = more.get("type", kinds.get(status, "invalid_request_error" if status < 500 else "api_error"))
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CB"}


def _mistral(status: int, message: str, more: dict[str, Any]) -> Any:
    if status == 401:
        return {"detail": "Unauthorized"}
    if status == 422:
        extra = {"type": "extra_forbidden", "loc": more["loc"], "msg": "Extra inputs are not permitted", "input": None}
        detail = {"detail": [extra]}
        return {"object": "error", "message": detail, "type": "invalid_request_error", "param": None, "code": None}
    kind = more.get("type", "invalid_request_error")
    return {"object": "error", "message": message, "type": kind, "param": None, "code": more.get("code")}


def _google(status: int, message: str, more: dict[str, Any]) -> Any:
    names = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
    return [{"error": {"code": status, "message": message, "status": names.get(status, "INVALID_ARGUMENT"), **more}}]


def _openrouter(status: int, message: str, more: dict[str, Any]) -> Any:
    if raw := more.get("raw"):
        metadata = {"raw": raw.replace("{message}", message), "provider_name": more["provider"]}
        return {"error": {"message": "Provider returned error", "code": status, "metadata": metadata}, "user_id": "u"}
    return {"error": {"message": message, "code": status}, "user_id": "user_2"}


def _xai(status: int, message: str, more: dict[str, Any]) -> Any:
    return {"code": more.get("code", "Client specified an invalid argument"), "error": message}


def _vllm(status: int, message: str, more: dict[str, Any]) -> Any:
    kind = more.get("type", {401: "Unauthorized", 404: "NotFoundError"}.get(status, "BadRequestError"))
    return {"error": {"message": message, "type": kind, "param": more.get("param"), "code": status}}


def _ollama(status: int, message: str, more: dict[str, Any]) -> Any:
    return {"error": {"message": message, "type": "api_error", "param": None, "code": None, **more}}


def _llama(status: int, message: str, more: dict[str, Any]) -> Any:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 503: "unavailable_error"}
    return {"error": {"code": status, "message": message, "type": kinds.get(status, "server_error"), **more}}


def _lmstudio(status: int, message: str, more: dict[str, Any]) -> Any:
    return {"error": message, **more}


def _litellm(status: int, message: str, more: dict[str, Any]) -> Any:
    return {"error": {"message": message, "type": more.get("type"), "param": None, "code": str(status)}}


def _azure(status: int, message: str, more: dict[str, Any]) -> Any:
    if status in (401, 429) or more.get("code") == "DeploymentNotFound":
        return {"error": {"code": more.get("code", str(status)), "message": message}}
    error = {"message": message, "type": more.get("type"), "param": more.get("param"), "code": more.get("code")}
    inner = {"innererror": more["innererror"]} if "innererror" in more else {}
    return {"error": {**error, "status": status, **inner}}


_FORMS: dict[str, Form] = {
    "mistral": _mistral,
    "google": _google,
    "openrouter": _openrouter,
    "xai": _xai,
    "vllm": _vllm,
    "ollama": _ollama,
    "llamacpp": _llama,
    "lmstudio": _lmstudio,
    "litellm": _litellm,
    "azure": _azure,
    "anthropic": _anthropic,
}

# github.com/FoundationAgents/OpenManus/issues/555, modelscope/ms-agent/pull/610,
# platform.openai.com/docs/guides/error-codes
OPENAI: Words = {
    "key": (401, "Incorrect API key provided: wrong***key. You can find your API key at https://platform.openai.com/"
            "account/api-keys.", {"code": "invalid_api_key"}),
    "model": (404, "The model `{model}` does not exist or you do not have access to it.", {"code": "model_not_found"}),
    "credit": (429, "You exceeded your current quota, please check your plan and billing details. For more information "
               "on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
               {"type": "insufficient_quota", "code": "insufficient_quota"}),
    "busy": (429, "Rate limit reached for {model} in organization org-x on tokens per min (TPM): Limit 30000, Used "
             "29000, Requested 2000. Please try again in 2s.", {"type": "tokens", "code": "rate_limit_exceeded"}),
    "window": (400, "This model's maximum context length is {window} tokens. However, your messages resulted in "
               "{tokens} tokens. Please reduce the length of the messages.",
               {"param": "messages", "code": "context_length_exceeded"}),
    "output": (400, "max_tokens is too large: {asked}. This model supports at most {limit} completion tokens, whereas "
               "you provided {asked}.", {"param": "max_tokens", "code": "invalid_value"}),
    "tools": (400, "tools is not supported with this model.", {"param": "tools", "code": "unsupported_parameter"}),
    "pictures": (400, "Invalid content type. image_url is only supported by certain models.",
                 {"param": "messages.[1].content.[0].type"}),
    "schema": (400, "Invalid schema for function '{tool}': In context=('properties', 'paths'), array schema missing "
               "items.", {"param": "tools[{index}].function.parameters", "code": "invalid_function_parameters"}),
    "parameter": (400, "Unsupported value: '{param}' does not support {value} with this model. Only the default (1) "
                  "value is supported.", {"param": "{param}", "code": "unsupported_value"}),
    "limit_name": (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                   "'max_completion_tokens' instead.", {"param": "max_tokens", "code": "unsupported_parameter"}),
    "filtered": (400, "Invalid prompt: your prompt was flagged as potentially violating our usage policy. Please try "
                 "again with a different prompt.", {"code": "invalid_prompt"}),
    "unknown_field": (400, "Unrecognized request argument supplied: {field}", {}),
    "request": (400, "{said}", {}),
    "server": (500, "The server had an error while processing your request. Sorry about that!", {}),
}  # fmt: skip

# docs.claude.com/en/api/errors; github.com/docker/docker-agent/issues/569, whoz-oss/coday/issues/26
ANTHROPIC: Words = {
    "key": (401, "invalid x-api-key", {}),
    "model": (404, "model: {model}", {}),
    "credit": (400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to "
               "upgrade or purchase credits.", {}),
    "busy": (529, "Overloaded", {}),
    "window": (400, "prompt is too long: {tokens} tokens > {window} maximum", {}),
    "output": (400, "max_tokens: {asked} > {limit}, which is the maximum allowed number of output tokens for {model}",
               {}),
    "pictures": (400, "messages.0.content.0: This model does not support image input.", {}),
    "schema": (400, "tools.{index}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft "
               "2020-12 (https://json-schema.org/draft/2020-12). Learn more about tool use at "
               "https://docs.claude.com/en/docs/tool-use.", {}),
    "parameter": (400, "`{param}` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult "
                  "our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking", {}),
    "unknown_field": (400, "{field}: Extra inputs are not permitted", {}),
    "filtered": (400, "Output blocked by content filtering policy", {}),
    "request": (400, "{said}", {}),
    "server": (500, "Internal server error", {}),
}  # fmt: skip

# github.com/avante-corp/avante.nvim/pull/2695, editor-code-assistant/eca/issues/231 and 233, docs.mistral.ai
MISTRAL: Words = {
    "key": (401, "Unauthorized", {}),
    "model": (400, "Invalid model: {model}", {"type": "invalid_model", "code": "1500"}),
    "busy": (429, "Service tier capacity exceeded for this model.",
             {"type": "service_tier_capacity_exceeded", "code": "3505"}),
    "window": (400, "Prompt contains {tokens} tokens and 0 draft tokens, too large for model with {window} maximum "
               "context length", {"type": "invalid_request_prompt_too_long", "code": "3051"}),
    "tools": (400, "Function calling is not enabled for this model", {"code": "3260"}),
    "pictures": (400, "Image input is not enabled for this model", {"code": "3260"}),
    "unknown_field": (422, "", {"loc": "{loc}"}),
    "order": (400, "{said}", {"type": "invalid_request_message_order", "code": "3230"}),
    "ids": (400, "Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.",
            {"type": "invalid_function_call", "code": "3280"}),
    "request": (400, "{said}", {}),
    "server": (500, "Internal server error", {"type": "internal_server_error", "code": "1000"}),
}  # fmt: skip

# ai.google.dev/gemini-api/docs/thought-signatures; github.com/google-gemini/gemini-cli/issues/4231 and 26486,
# zed-industries/zed/issues/44875; discuss.ai.google.dev/t/109823
GOOGLE: Words = {
    "key": (400, "API key not valid. Please pass a valid API key.", {}),
    "model": (404, "models/{model} is not found for API version v1main, or is not supported for generateContent. Call "
              "ListModels to see the list of available models and their supported methods.", {}),
    "credit": (429, "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to "
               "manage your project and billing.", {}),
    "busy": (503, "The model is overloaded. Please try again later.", {}),
    "window": (400, "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).", {}),
    "tools": (400, "Function calling is not enabled for models/{model}", {}),
    "pictures": (400, "Image input modality is not enabled for models/{model}", {}),
    "schema": (400, "Invalid JSON payload received. Unknown name \"{keyword}\" at 'tools[0].function_declarations"
               "[{index}].parameters': Cannot find field.", {}),
    "unknown_field": (400, "Invalid JSON payload received. Unknown name \"{field}\": Cannot find field.", {}),
    "signature": (400, "Function call is missing a thought_signature in functionCall parts. This is required for tools "
                  "to work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                  "data, function call `default_api:{tool}` , position {index}. Please refer to "
                  "https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", {}),
    "request": (400, "{said}", {}),
    "server": (500, "An internal error has occurred. Please retry or report in "
               "https://developers.generativeai.google/guide/troubleshooting", {}),
}  # fmt: skip

# openrouter.ai/docs/api/reference/errors-and-debugging; github.com/agno-agi/agno/issues/3980,
# continuedev/continue/issues/11154, LibreChat-AI/agents/issues/37
OPENROUTER: Words = {
    "key": (401, "No auth credentials found", {}),
    "model": (400, "{model} is not a valid model ID", {}),
    "credit": (402, "This request requires more credits, or fewer max_tokens. You requested up to {asked} tokens, but "
               "can only afford 222. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid "
               "account", {}),
    "busy": (429, "{model} is temporarily rate-limited upstream. Please retry shortly.", {
             "raw": "{message}", "provider": "Google AI Studio"}),
    "window": (400, "This endpoint's maximum context length is {window} tokens. However, you requested about {tokens} "
               "tokens ({tokens} of text input). Please reduce the length of either one, or use the "
               '"middle-out" transform to compress your prompt automatically.', {}),
    "tools": (404, "No endpoints found that support tool use. To learn more about provider routing, visit: "
              "https://openrouter.ai/docs/provider-routing", {}),
    "pictures": (404, "No endpoints found that support image input", {}),
    "schema": (400, "Invalid schema for function '{tool}': In context=('properties', 'paths'), array schema missing "
               "items.", {"provider": "OpenAI", "raw": '{"error":{"message":"{message}","type":'
               '"invalid_request_error","param":"tools[0].function.parameters","code":"invalid_function_parameters"}}'}),
    "filtered": (403, "Your input was flagged by the provider's moderation: violence", {}),
    "signature": (400, "Function call is missing a thought_signature in functionCall parts.", {
        "provider": "Google AI Studio", "raw": "Gemini models require OpenRouter reasoning details to be preserved in "
        "each request. Please refer to our docs: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens"
        '#preserving-reasoning-blocks. Upstream error: {"error":{"code":400,"message":"{message}"}}'}),
    "request": (400, "{said}", {"provider": "Anthropic", "raw": '{"type":"error","error":{"type":'
                '"invalid_request_error","message":"{message}"}}'}),
    "server": (502, "Provider returned error", {}),
}  # fmt: skip


def filled(value: Any, facts: Mapping[str, Any]) -> Any:
    """The value with the facts in its words; a number stays one where the words are nothing else."""
    if isinstance(value, dict):
        return {key: filled(each, facts) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, facts) for each in value]
    if not isinstance(value, str):
        return value
    if value[:1] == "{" and value[1:-1] in facts and value[-1:] == "}":
        return facts[value[1:-1]]
    for name, fact in facts.items():
        value = value.replace("{" + name + "}", str(fact))
    return value


def body_of(row: str, words: Words, refusal: Refusal) -> tuple[int, Any]:
    """Status and body of this refusal, in the row's form and words."""
    status, message, more = words[refusal.kind]
    facts = {"message": "{message}", **refusal.facts}
    said = refusal.message or filled(message, facts)
    return refusal.status or status, _FORMS.get(row, _openai)(status, said, filled(more, facts))


def event_of(row: str, words: Words, refusal: Refusal) -> bytes:
    """The refusal as an event in a stream that began with 200."""
    _, body = body_of(row, words, refusal)
    body = body[0] if isinstance(body, list) else body
    if row == "openrouter":  # its own form: openrouter.ai/docs/api/reference/errors-and-debugging, "mid-stream"
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "native_finish_reason": "error"}
        body = {"id": "gen-1", "object": "chat.completion.chunk", **body, "choices": [choice]}
    named = b"event: error\n" if row in ("anthropic", "lmstudio", "groq") else b""
    return named + b"data: " + json.dumps(body).encode() + b"\n\n"
