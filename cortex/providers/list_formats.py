"""Reads the lists that servers give of their models, each in its documented form, into `ListedModel`. Pure.

One reader for the forms of /v1/models, which differ in what they add: OpenAI, OpenRouter, vLLM, Groq, Mistral,
Together, Anthropic, Google; and one for each local server's own pages: Ollama, LM Studio, llama.cpp (all read in 2026).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cortex.base.hidden import is_hiding
from cortex.base.model import LOCAL_WINDOW_TOKENS, Price
from cortex.ports.model_lists import ListedModel

Row = Mapping[str, Any]  # Any: outside JSON, each value is looked at before it is used
MOST_ROWS = 3_000
_MILLION = 1_000_000
_CONTEXT = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
_OUTPUT = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_OTHER_TYPES = {"embeddings", "embedding", "image", "audio", "rerank", "moderation", "transcribe"}
# What a bare list does not say and a name does: OpenAI, Google, Groq and DeepSeek list what makes pictures, speech and
# vectors among what chats.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|rerank|[-_]image|imagen|\bveo|sora|babbage|davinci"
    r"|[-_]audio|guard|\baqa\b|[-_]live\b|[-_]instruct-\d{4}$"
)
# By the makers' pages of models, 2026-11: whose bare lists do not say it.
_SEES = {
    "api.openai.com": re.compile(
        r"^(gpt-(4o|4\.1|4\.5|4-turbo|[5-9])|chatgpt-4o|o1(?!-(mini|preview))|o3(?!-mini)|o4)"
    ),
    "generativelanguage.googleapis.com": re.compile(r"^gemini-"),
}


def rows_of(body: object) -> Sequence[Row] | None:
    """The rows of a list: of `data`, of `models`, or the list itself; None where there is none."""
    found = body
    if isinstance(body, dict):
        found = body.get("data", body.get("models"))
    if not isinstance(found, list):
        return None
    return [row for row in found[:MOST_ROWS] if isinstance(row, dict)]


def models_of(rows: Iterable[Row], host: str) -> tuple[tuple[ListedModel, ...], int]:
    """The models of these rows that chat, newest first, each once; and how many do not."""
    newest = sorted(rows, key=lambda row: -(_number(row.get("created")) or 0))
    found: dict[str, ListedModel] = {}
    others = set()
    for row in newest:
        name = id_of(row)
        if not name:
            continue
        if _chats(row, name):
            found.setdefault(name, _listed(row, name, host))
        else:
            others.add(name)
    return tuple(found.values()), len(others - set(found))


def id_of(row: Row) -> str:
    """What the server calls the model; "" where it could not be asked for by it."""
    name = next((row[key] for key in ("id", "model", "name") if isinstance(row.get(key), str)), "")
    plain = name.removeprefix("models/").strip()  # Google's way, which its chat takes without
    return plain if len(plain) <= 200 and not any(map(is_hiding, plain)) and " " not in plain else ""


def loaded_of(body: object) -> Mapping[str, int]:
    """Ollama's loaded models with the context that each is served with, by /api/ps."""
    rows = rows_of(body) or ()
    return {id_of(row): size for row in rows if (size := _number(row.get("context_length")))}


def with_ollama(model: ListedModel, shown: Row, loaded_tokens: int | None = None) -> ListedModel | None:
    """The model with what /api/show says of it; None where it does not chat.

    The length that it was trained for is none that it is served with: Ollama gives 4,096 tokens or more by the
    memory there is, and cuts the rest silently. What is served is told by a set num_ctx, or once it is loaded.
    """
    can = _words(shown.get("capabilities"))
    if can and "completion" not in can:
        return None
    info = shown.get("model_info")
    own = [value for key, value in info.items() if key.endswith(".context_length")] if isinstance(info, dict) else []
    set_by_hand = re.search(r"^num_ctx\s+(\d+)", str(shown.get("parameters") or ""), re.MULTILINE)
    trained = _number(own[0]) if own else None
    served = int(set_by_hand[1]) if set_by_hand else loaded_tokens
    if trained and (served or LOCAL_WINDOW_TOKENS) >= trained:
        served = trained
    return replace(
        model,
        context_tokens=served or model.context_tokens,
        tools="tools" in can if can else None,
        sees="vision" in can if can else None,
        thinks="thinking" in can if can else None,
    )


def with_llama_cpp(model: ListedModel, props: Row) -> ListedModel:
    """The model with what /props says: the context it is served with, not the one it was trained for."""
    settings, can, caps = (
        props.get(key) for key in ("default_generation_settings", "modalities", "chat_template_caps")
    )
    context = _number(settings.get("n_ctx")) if isinstance(settings, dict) else None
    sees = can.get("vision") if isinstance(can, dict) else None
    tools = caps.get("supports_tools") if isinstance(caps, dict) else None
    return replace(
        model,
        context_tokens=context or model.context_tokens,
        sees=sees if isinstance(sees, bool) else model.sees,
        tools=tools if isinstance(tools, bool) else model.tools,
    )


def _listed(row: Row, name: str, host: str) -> ListedModel:
    top, meta = _inner(row, "top_provider"), _inner(row, "meta")
    loaded = _number(row.get("loaded_context_length")) or _number(meta.get("n_ctx"))
    is_served = row.get("state") != "not-loaded"  # LM Studio: only what is loaded has a context, the rest a longest one
    label = row.get("display_name") or row.get("name") or ""
    return ListedModel(
        id=name,
        label=label if isinstance(label, str) and label.removeprefix("models/") != name else "",
        context_tokens=(loaded or _first(row, _CONTEXT) or _first(top, _CONTEXT)) if is_served else None,
        max_output_tokens=_first(top, _OUTPUT) or _first(row, _OUTPUT),
        price=_price(row.get("pricing")),
        **_abilities(row, name, host),
    )


def _abilities(row: Row, name: str, host: str) -> dict[str, bool | None]:
    """tools, sees, thinks: by whichever of the forms the row has."""
    can, takes = row.get("capabilities"), _words(row.get("supported_parameters"))
    reads = _words(row["architecture"].get("input_modalities")) if isinstance(row.get("architecture"), dict) else set()
    tools: bool | None = "tools" in takes if takes else None
    thinks: bool | None = bool(takes & {"reasoning", "include_reasoning"}) if takes else None
    sees: bool | None = "image" in reads if reads else None
    if isinstance(can, dict):  # Mistral: name -> bool; Anthropic: name -> {"supported": bool}
        tools = _flag(can, "function_calling", tools)
        sees = _flag(can, "vision", _flag(can, "image_input", sees))
        thinks = _flag(can, "reasoning", _flag(can, "thinking", thinks))
        tools = True if "image_input" in can and tools is None else tools  # every model of Anthropic's list calls tools
    elif can := _words(can):  # LM Studio
        tools = "tool_use" in can
    if row.get("type") in ("llm", "vlm"):
        sees = row["type"] == "vlm"
    if sees is None and host in _SEES:
        sees = bool(_SEES[host].search(name))
    return {"tools": tools, "sees": sees, "thinks": thinks}


def _chats(row: Row, name: str) -> bool:
    can, shape = row.get("capabilities"), row.get("architecture")
    if isinstance(can, dict) and can.get("completion_chat") is False:
        return False
    if row.get("type") in _OTHER_TYPES or row.get("active") is False or row.get("lifecycle") == "retired":
        return False
    writes = _words(shape.get("output_modalities")) if isinstance(shape, dict) else set()
    return "text" in writes if writes else not _NO_CHAT.search(name.lower())


def _price(pricing: object) -> Price:
    """OpenRouter's: dollars for one token, as text. What is below 0 depends on where it is sent, so it is not known."""
    if not isinstance(pricing, dict) or "prompt" not in pricing:
        return Price()
    names = ("prompt", "completion", "input_cache_read", "input_cache_write")
    each = [_dollars(pricing.get(name)) for name in names]
    if each[0] is None or each[1] is None:
        return Price()
    return Price(input_usd=each[0], output_usd=each[1], cached_usd=each[2], written_usd=each[3])


def _dollars(value: object) -> float | None:
    try:
        found = float(value) if isinstance(value, (str, int, float)) else -1.0
    except ValueError:
        return None
    return round(found * _MILLION, 6) if 0 <= found <= 0.01 else None


def _inner(row: Row, key: str) -> Row:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _first(row: Row, keys: Iterable[str]) -> int | None:
    return next((number for key in keys if (number := _number(row.get(key)))), None)


def _number(value: object) -> int | None:
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 2**53
    return int(value) if is_one else None  # type: ignore[call-overload]  # just looked at


def _words(value: object) -> set[str]:
    return {one for one in value if isinstance(one, str)} if isinstance(value, list) else set()


def _flag(can: Row, key: str, otherwise: bool | None) -> bool | None:
    value = can.get(key)
    if isinstance(value, dict):
        value = value.get("supported")
    return value if isinstance(value, bool) else otherwise
