"""Reads the lists that servers give of their models, each in its documented form, into `ListedModel`. Pure.

One reader for the lists themselves, which differ in what they add (OpenAI, OpenRouter, vLLM, Groq, Mistral, Together,
xAI, Azure, Anthropic, Google), and one for each server's own pages: Ollama, LM Studio, llama.cpp, LiteLLM.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cortex.base.hidden import is_hiding
from cortex.base.model import LOCAL_WINDOW_TOKENS, Price
from cortex.ports.model_lists import ListedModel, is_path, name_of
from cortex.providers.server_row import ServerRow

Row = Mapping[str, Any]  # Any: outside JSON, each value is looked at before it is used
MOST_ROWS = 3_000
_MILLION = 1_000_000
_CONTEXT = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens",
            "max_prompt_length")  # fmt: skip
_OUTPUT = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_OTHER_TYPES = {
    "embeddings", "embedding", "image", "audio", "rerank", "moderation", "transcribe", "video", "speech",
    "language", "code",  # Together's, of models that only go on with a text
}  # fmt: skip
# What a bare list does not say and a name does: OpenAI, Google, Groq and DeepSeek list what makes pictures, speech and
# vectors among what chats.
_NO_CHAT = re.compile(
    r"embed|whisper|tts|dall-e|moderation|transcribe|realtime|rerank|[-_]image|imagen|\bveo|sora|babbage|davinci"
    r"|[-_]audio|guard|\baqa\b|[-_]live\b|[-_]instruct-\d{4}$"
)

# Parts of a price, in, out, from the cache, into it, as each calls them.
_OPENROUTER = ("prompt", "completion", "input_cache_read", "input_cache_write")
_TOGETHER = ("input", "output", "cached_input", "")
_XAI = ("prompt_text_token_price", "completion_text_token_price", "cached_prompt_text_token_price", "")
_LITELLM = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
            "cache_creation_input_token_cost")  # fmt: skip
_OWNERS = {"vllm": "vllm", "llamacpp": "llamacpp"}


def rows_of(body: object) -> Sequence[Row] | None:
    """The rows of a list: of `data`, of `models`, or the list itself; None where there is none."""
    found = body
    if isinstance(body, dict):
        found = body.get("data", body.get("models"))
    if not isinstance(found, list):
        return None
    return [row for row in found[:MOST_ROWS] if isinstance(row, dict)]


def models_of(rows: Iterable[Row], server: ServerRow) -> tuple[tuple[ListedModel, ...], int]:
    """The models of these rows of the server's list that chat, newest first, each once; and how many do not."""
    newest = sorted(rows, key=lambda row: -(_number(row.get("created")) or 0))
    found: dict[str, ListedModel] = {}
    others = set()
    for row in newest:
        name = id_of(row)
        if not name:
            continue
        if _chats(row, name):
            found.setdefault(name, _listed(row, name, server))
        else:
            others.add(name)
    return tuple(found.values()), len(others - set(found))


def id_of(row: Row) -> str:
    """Return what the server calls the model; "" where it could not be asked for by it."""
    name = next((row[key] for key in ("id", "key", "model", "name") if isinstance(row.get(key), str)), "")
    plain = (name if is_path(name) else name.removeprefix("models/")).strip()  # Google's way, not in its chat
    is_odd = len(plain) > 200 or any(map(is_hiding, plain)) or (" " in plain and not is_path(plain))
    return "" if is_odd else plain


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


def with_litellm(models: Iterable[ListedModel], info: Iterable[Row]) -> tuple[ListedModel, ...]:
    """The models that chat, each with what /model/info says of it; of several behind one name the least of them."""
    told: dict[str, list[Row]] = {}
    for row in info:
        if isinstance(name := row.get("model_name"), str):
            told.setdefault(name, []).append(_inner(row, "model_info"))
    return tuple(
        _with_least(model, told.get(model.id, []))
        for model in models
        if all(one.get("mode") in (None, "chat", "responses") for one in told.get(model.id, []))
    )


def _with_least(model: ListedModel, told: Sequence[Row]) -> ListedModel:
    def least(key: str) -> int | None:
        return min((size for one in told if (size := _number(one.get(key)))), default=None)

    def can(key: str) -> bool | None:
        said = [one[key] for one in told if isinstance(one.get(key), bool)]
        return all(said) if said else None

    price = _price(told[0], _LITELLM) if len(told) == 1 else Price()
    return replace(
        model,
        context_tokens=least("max_input_tokens") or least("max_tokens") or model.context_tokens,
        max_output_tokens=least("max_output_tokens") or model.max_output_tokens,
        tools=can("supports_function_calling"),
        sees=can("supports_vision"),
        thinks=can("supports_reasoning"),
        price=price if price.input_usd or price.output_usd else Price(),  # it says 0 of what it does not know
    )


def loaded_instances(rows: Iterable[Row]) -> Sequence[Row]:
    """LM Studio's newer list with the fields of its older one."""
    return [
        {
            **row,
            "id": id_of(row),
            "capabilities": ["tool_use"] if _inner(row, "capabilities").get("trained_for_tool_use") else [],
            "type": "vlm" if _inner(row, "capabilities").get("vision") else row.get("type"),
            "state": "loaded" if (loaded := _loaded_tokens(row)) else "not-loaded",
            "loaded_context_length": loaded,
        }
        for row in rows
    ]


def _loaded_tokens(row: Row) -> int | None:
    instances = row.get("loaded_instances")
    found = [_inner(one, "config") for one in instances if isinstance(one, dict)] if isinstance(instances, list) else []
    return min((size for one in found if (size := _number(one.get("context_length")))), default=None)


def engine_of(rows: Iterable[Row]) -> str:
    """The server, by whom its list says that it is owned by; "" where that says nothing."""
    return next((_OWNERS[owner] for row in rows if (owner := str(row.get("owned_by"))) in _OWNERS), "")


def _listed(row: Row, name: str, server: ServerRow) -> ListedModel:
    top, meta = _inner(row, "top_provider"), _inner(row, "meta")
    loaded = _number(row.get("loaded_context_length")) or _number(meta.get("n_ctx"))
    is_served = row.get("state") != "not-loaded"  # LM Studio: only what is loaded has a context, the rest a longest one
    label = row.get("display_name") or row.get("name") or _made_from(row, "")
    return ListedModel(
        id=name,
        label=label if isinstance(label, str) and name_of(label.removeprefix("models/")) != name_of(name) else "",
        context_tokens=(loaded or _first(row, _CONTEXT) or _first(top, _CONTEXT)) if is_served else None,
        max_output_tokens=_first(top, _OUTPUT) or _first(row, _OUTPUT),
        price=_listed_price(row, server),
        **_abilities(row, name, server),
    )


def _abilities(row: Row, name: str, server: ServerRow) -> dict[str, bool | None]:
    """tools, sees, thinks: by whichever of the forms the row has."""
    can, takes = row.get("capabilities"), _words(row.get("supported_parameters"))
    reads = _words(row.get("input_modalities")) or _words(_inner(row, "architecture").get("input_modalities"))
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
    if sees is None and server.sees:
        sees = re.search(server.sees, _made_from(row, name)) is not None
    return {"tools": tools, "sees": sees, "thinks": thinks}


def _chats(row: Row, name: str) -> bool:
    can = _inner(row, "capabilities")
    if can.get("completion_chat") is False or can.get("chat_completion") is False:  # Mistral's; Azure's
        return False
    if row.get("type") in _OTHER_TYPES or row.get("active") is False or row.get("lifecycle") == "retired":
        return False
    if row.get("status") in ("failed", "deleted", "canceled"):  # Azure's deployments
        return False
    writes = _words(row.get("output_modalities")) or _words(_inner(row, "architecture").get("output_modalities"))
    return "text" in writes if writes else not _NO_CHAT.search(_made_from(row, name_of(name)).lower())


def _made_from(row: Row, name: str) -> str:
    """The model behind this row: of Azure's deployments, whose names their people chose; else `name`."""
    return str(row.get("model") or name) if row.get("object") == "deployment" else name


def _listed_price(row: Row, server: ServerRow) -> Price:
    if server.id == "xai":
        return _price(row, _XAI, 1e-10)
    pricing = row.get("pricing")
    if server.id == "together":
        found = _price(pricing, _TOGETHER, 1e-6)
        return found if found.input_usd or found.output_usd else Price()  # 0 of what can only be rented
    return _price(pricing, _OPENROUTER)


def _price(pricing: object, names: Sequence[str], unit: float = 1.0) -> Price:
    """By the names of its parts: in, out, cached, written; unit: dollars for one token that a value of 1 means.

    OpenRouter's is text; what is below 0 there depends on where it is sent, so it is not known.
    """
    if not isinstance(pricing, dict):
        return Price()
    each = [_dollars(pricing.get(name), unit) for name in names]
    if each[0] is None or each[1] is None:
        return Price()
    return Price(input_usd=each[0], output_usd=each[1], cached_usd=each[2], written_usd=each[3])


def _dollars(value: object, unit: float) -> float | None:
    try:
        found = float(value) * unit if isinstance(value, (str, int, float)) else -1.0
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
