"""What a model server did not take, read from the words with which it refused, and that as a sentence. Pure.

`failures.py` calls `rejection` for each body of an error, and `sentence_of`; `services/models/second_shape.py` asks
again in a shape that the server takes. The words of all servers stand in `SAYS`, those of one in its row's `says`;
`tests/providers/refusals.json` has bodies as people reported them.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from cortex.base.errors import Rejection, RejectionKind
from cortex.base.hidden import show_hidden
from cortex.base.json_text import parsed
from cortex.base.model import ModelEntry
from cortex.providers.said import short
from cortex.providers.server_row import ServerRow

_MOST_CHARACTERS = 20_000  # of a body that are read: what a server repeats of a long request is no word of its own
_LEVELS = 6
_PLAUSIBLE_TOKENS = range(64, 20_000_001)
_LEAST_WINDOW = 256  # tokens: of less no chat can be made, so that it is another number, or a slip

# The kinds in the order in which they are looked for: the narrow ones ahead of those whose words others use too.
SAYS: Mapping[RejectionKind, str] = {
    "window": r"context[_ ](length|window|size|limit)\w*[_ ]?exceed"
    r"|exceed\w* (the |this )?(available |model'?s? )?(max\w* )?(context|input length)"
    r"|maximum (context|prompt) length|(prompt|input|request|conversation)\b.{0,40} (is )?too long"
    r"|too many (input |total )?tokens|tokens? (in the prompt )?(cannot exceed|limit exceeded|exceed)"
    r"|input token count|model token limit|longer than the (model'?s? )?(maximum )?context"
    r"|reduce the length of the (messages|input|prompt)|when context the overflows|context length of only"
    r"|`?inputs`? tokens \+|`inputs` must have less than|range of input length|prompt exceeds"
    r"|request too large for|request body too large for|too large for model with"
    r"|greater than the context length|entity too large|request_too_large|payload too large",
    "output": r"\bmax_?(completion_|output_|new_)?tokens\b.{0,60}(too large|too high|at most|maximum|valid range"
    r"|less than|limited|range|must be <=|above|> \d)"
    r"|at most \d+ (completion|output) tokens|maximum allowed number of output tokens",
    "parameter": r"unsupported (parameter|value)|unknown parameter|unrecognized request argument|argument not supported"
    r"|does not support (the )?parameters?|n[o']t support \w+=|does not support this tool_choice"
    r"|provided '?tool_choice'? value"
    r"|cannot both be (specified|set)|extra[_ ](inputs|fields|forbidden)\b.{0,40}"
    r"|unknown name .{0,40} cannot find field|verified to (stream|generate)|may only be set to"
    r"|(is|are) (not supported|unsupported|deprecated)( for| with| by| on)? (this|the) (model|api)"
    r"|when tool_choice forces|property '\w+' is (un|not )supported|does not support thinking|think value"
    r"|unsupported_(parameter|value)|unknown_parameter",
    "schema": r"invalid (function )?schema|input_schema|function_declarations\["
    r"|json schema (is )?(invalid|conversion)|tools?\[\d+\]\S* |tools\.\d+\.|body\.\d+\.function"
    r"|(pars|compil)\w+ grammar|invalid_function_parameters|tool names must be unique"
    r"|\bfunction\b.{0,30}\bparameters\b.{0,40}(invalid|expected|must)",
    "pictures": r"image_url|image[_ ]?input|support images?|images? (is|are) not supported|not a multimodal|multimodal"
    r"|vision (is )?not|at most \d+ image|could not process image|image exceeds"
    r"|image.{0,40}(too large|dimension|unsupported)|only supports? text|mmproj"
    r"|invalid type: sequence, expected a string|ChatCompletionRequestContent",
    "thinking": r"reasoning_(content|details)|redacted_thinking|`thinking`|\.thinking`|thought_signature"
    r"|signature.{0,20} in .?thinking|of type 'reasoning'|encrypted (reasoning|content)"
    r"|reasoning is not supported|property 'reasoning\w*' is unsupported",
    "ids": r"tool call id|tool_call_id|tool_use_id|tool_calls?\[?\d*\]?\.id|call_id|`?tool_use`? ids"
    r"|no tool (call|output) found|number of function (calls|response)|tool_calls' must be followed"
    r"|preceding message with 'tool_calls'|invalid_function_call\b|requires that all tool",
    "order": r"unexpected role|expected last role|roles must alternate|must alternate|message_order"
    r"|function call turn comes|assistant message prefill|(first|last) message must"
    r"|must (start|end) with a user|system message must|only supports? (user|alternating)"
    r"|no user query found|jinja (exception|template)|chat template",
    "tools": r"support tool"
    r"|tools? (use|call\w*|param\w*|choice)?\b.{0,24}(is|are)? ?(not (supported|enabled)|requires)"
    r"|support (the )?(function|tool)[ -]call|(functions|function calling) (is|are) not"
    r"|unsupported param: tools|not support(ed)? (function|tool)|not supported for .{0,30}function call"
    r"|enable-auto-tool-choice",
    "credit": r"credit balance|requires more credits|insufficient (balance|quota|funds|credit)|insufficient_quota"
    r"|exceeded your current quota|payment required|billing|arrears|out of credits|no (credits|balance)"
    r"|used all available credits|spending limit|budget has been exceeded|budget_exceeded",
    "filtered": r"content[_ ](filter|management|policy)|responsible ?ai|prohibited_content|content exists risk"
    r"|data_inspection|flagged|blocked by|usage polic|safety (system|settings|filter)|invalid_prompt"
    r"|moderation",
    "overloaded": r"overloaded|rate.?limit|too many requests|at capacity|capacity exceeded|temporarily unavailable"
    r"|try again (later|shortly|in )|server is busy|resource.?exhausted|bad gateway|gateway time-?out"
    r"|timeout occurred|service unavailable|unavailable_error|loading model"
    r"|server busy|too busy|maximum pending|no slots? available",
    "model": r"model[_ ]not[_ ](found|exist)"
    r"|\bmodel\b.{0,120}(not found|does not exist|not exist|is not (available|a valid|supported for|loaded)"
    r"|decommissioned|deprecated|retired)"
    r"|(unknown|invalid|no such) model|no models? (is |are )?loaded|not a valid model|try pulling it"
    r"|no endpoints found for"
    r"|unable to access model|deployment\b.{0,60}does not exist|deploymentnotfound|models/\S+ is not found"
    r"|not_found_error model|\bmodel: \S+ type: not_found_error",
    "route": r"no endpoints|no allowed providers|provider routing|no (available )?providers?|data policy",
}  # fmt: skip

_NUMBER = r"(?P<{name}>\d[\d,_]*)"
_WINDOW, _SENT, _OUTPUT = (_NUMBER.format(name=name) for name in ("window", "sent", "output"))
# How long a request may be, and how long it was, by their words.
_LENGTHS = (
    rf"length is (only )?{_WINDOW}( tokens)?.{{0,80}}\({_SENT} (in the messages|of text input|in your prompt)",
    rf"length is (only )?{_WINDOW}( tokens)?.{{0,80}}?(resulted in|contains|requested( about)?|has) {_SENT}",
    rf"{_SENT}( tokens)? > {_WINDOW} maximum",
    rf"n_keep: {_SENT} ?>= n_ctx: {_WINDOW}",
    rf"context limit: {_SENT} \+ \d+ > {_WINDOW}",
    rf"token count( \({_SENT}\))? exceeds the maximum number of tokens allowed \({_WINDOW}\)",
    rf"keep the first {_SENT} tokens.{{0,120}}length of only {_WINDOW}",
    rf"must be <= {_WINDOW}\. given: {_SENT} `inputs`",
    rf"must have less than {_WINDOW} tokens\. given: {_SENT}",
    rf"\({_SENT}( tokens)?\) exceeds? (the available context size|context window of) \(?{_WINDOW}",
    rf"contains {_SENT} tokens.{{0,40}} too large for model with {_WINDOW} max",
    rf"{_SENT} tokens (exceeds|is longer than|>) .{{0,60}}?{_WINDOW}",
    rf"\({_SENT} tokens\) is longer than .{{0,60}}?\({_WINDOW} tokens",
    rf"current length is {_SENT} while limit is {_WINDOW}",
    rf"cannot exceed {_WINDOW} - received {_SENT}",
    rf"too long: {_SENT}, .{{0,40}}length: {_WINDOW}",
    rf"tokens? per min\w* \(TPM\): limit {_WINDOW}, requested (?P<asked>\d+)",
    rf"range of input length should be \[\d+, {_WINDOW}\]",
    rf"(length|window|limit|size)( of this model)?( is|:| of)( only)? {_WINDOW}",
    rf"maximum (of|allowed|number of tokens).{{0,24}}? {_WINDOW}",
)  # fmt: skip
_OUTPUTS = (
    rf"at most {_OUTPUT}",
    rf"tokens\W{{0,3}}:? \d+ > {_OUTPUT}",
    rf"(range|valid range of \w+) (is|should be|of) \[\d+, {_OUTPUT}\]",
    rf"less( than)? or equal( to)? `?{_OUTPUT}",
    rf"(must be|value) <= {_OUTPUT}",
    rf"only afford {_OUTPUT}",
    r"to (?P<over>\d+) \(exclusive\)",
    rf"(maximum|limit)\D{{0,40}}{_OUTPUT}",
)  # fmt: skip
_PARAMETERS = (
    r"cannot both be.*`(?P<name>\w+)`|`\w+` and `(?P<second>\w+)` cannot both",
    r"\bparam: (?P<name>[a-z]\w*)",
    r"(parameter|value|arguments?( supplied)?|name|property)\W{1,3}(?P<name>[A-Za-z]\w*)",
    r"not support (the )?parameters?:? \[?[`'\"]?(?P<name>\w+)|supported on this model: (?P<second>\w+)",
    r"[`'\"](?P<name>[a-z]\w+)[`'\"] (is|may|does|value|parameter|must)",
    r"not support this (?P<name>\w+)|n[o']t support (?P<second>\w+)=",
    r"provided '(?P<name>\w+)' value|when (?P<second>tool_choice) forces",
    r"(at #/|body\.|[`'\"]body[`'\"], ?[`'\"])(?P<name>[a-z]\w*)",
    r"^(?P<name>[a-z]\w+)(\.\w+)*: extra inputs",
    r"does not support (?P<name>thinking)|(?P<second>think) value|\b(?P<third>thinking)[\w.]*\W{0,2} is not supported",
)
_NO_PARAMETER = (
    r"reasoning_content|\.reasoning\b|'reasoning\w*' is unsup|tools\[\d|function_declarations|\btools\.\d|image"
    r"|messages\.\d|tools? is not|functions are|at body\.(tools|messages|\d)"
)
_NO_PARAMETERS = frozenset({"messages", "model", "input", "contents", "prompt", "system", "body", "request", "schema"})
_OTHER_NAMES = {"think": "reasoning_effort", "thinking": "reasoning_effort"}
_TOOLS = r"(?:function_declarations\[|tools\[|\btools\.)(?P<place>\d+)(?!\]\.function_declarations)"
_TOOL_NAMES = r"\b(?:function|tool)\W{1,3}[`'\"](?P<name>[A-Za-z0-9_.-]{1,64})[`'\"]"
_THESE = r"at most [1-9]\d* image|could not process|image exceeds|too large|dimension|unsupported image"
_TITLES = r"<title[^>]{0,200}>(?P<title>.{1,300}?)</title>"


def rejection(row: ServerRow, status: int, body: object, text: str = "") -> Rejection | None:
    """Give what the server did not take. body: of its answer, parsed; text: as it came. None where it said nothing."""
    words = [*(_words(body, 0) if body is not None else _page(text))]
    said = next((one for one in words if " " in one), words[0] if words else "")
    heard = " ".join(" ".join(words)[:_MOST_CHARACTERS].split())
    if not heard:
        return None
    what, own = _what(row, status, heard)
    limits = {**_limits(what, heard, body)}
    if number := next((own[key] for key in ("window", "output") if own.get(key)), ""):
        key = "window_tokens" if own.get("window") else "output_tokens"
        limits[key] = limits.get(key) or int(re.sub(r"\D", "", number))
    name = _name(what, heard, body) or own.get("name") or (f"tools[{own['index']}]" if own.get("index") else "")
    if (what, name) == ("parameter", "tools"):
        what, name = "tools", ""
    return Rejection(what=what, said=show_hidden(short(said)), name=name, **limits)


def sentence_of(entry: ModelEntry, found: Rejection) -> str:
    """Say what happened and what to do, with the server's own words; for who owns the model."""
    quote = f" It said: {found.said}" if found.said else ""
    return f"{entry.name}: {_HAPPENED[found.what].format(**_figures(entry, found))}{quote}"


_HAPPENED: Mapping[RejectionKind, str] = {
    "window": "the request is longer than {window} that it takes. Ask with less at once, or start a new chat.",
    "output": "it gives {output} in one answer. Lower the longest answer on its page under Models.",
    "tools": "it takes no tools. Switch off “Calls tools” on its page under Models, or choose another model.",
    "pictures": "it does not take {these}. Send the message without them, or choose a model that sees.",
    "schema": "it does not take the form of {tool}. Switch that tool off in this chat, or choose another model.",
    "parameter": "it does not take {parameter}. Remove that from its settings.",
    "thinking": "it does not take its earlier reasoning back. Start a new chat, or choose another model.",
    "ids": "it does not take the calls of this chat. Start a new chat, or choose another model.",
    "order": "it does not take this order of messages. Start a new chat, or choose another model.",
    "model": "no model {model!r} at this address. Check the model id on its page under Models.",
    "route": "no server behind this address takes such a request. Choose another model, or change its routing there.",
    "credit": "its account has too little credit. Add credit at the provider, or choose another model.",
    "overloaded": "its server is overloaded or out of order. Try again later.",
    "filtered": "the provider's content filter refused the request. Put it in other words.",
    "other": "the request was refused. Check its settings on the Models page.",
}


def _figures(entry: ModelEntry, found: Rejection) -> dict[str, str]:
    window = f"the {found.window_tokens:,} tokens" if found.window_tokens else "the context"
    output = f"at most {found.output_tokens:,} tokens" if found.output_tokens else "fewer tokens"
    is_named = found.name and "[" not in found.name
    return {
        "window": window,
        "output": output,
        "these": "these pictures" if found.name else "pictures",
        "tool": f"the tool {found.name}" if is_named else "one of the tools",
        "parameter": f"the parameter {found.name}" if found.name else "one of the parameters",
        "model": entry.model,
    }


def _what(row: ServerRow, status: int, heard: str) -> tuple[RejectionKind, Mapping[str, str | None]]:
    """The kind and what the words name, by the row's own, else by those of all servers, else by the status.

    Groups of a row: `window` and `output` in tokens, `name` of a parameter or a tool, `index` of a tool.
    """
    for says in (row.says, SAYS):
        for what in SAYS:
            found = re.search(says[what], heard, re.IGNORECASE) if what in says else None
            if found is not None and not _is_other(what, heard):
                return what, found.groupdict() if says is row.says else {}
    if status == 402:
        return "credit", {}
    return "overloaded" if status in (408, 429) or status >= 500 else "other", {}


def _is_other(what: RejectionKind, heard: str) -> bool:
    """Tell whether words of this kind mean another one here."""
    if what == "window":  # the answer's length, or what is left of a minute
        is_rate = re.search(r"rate limit reached|tokens per day|\(TPD\)|used \d+, requested", heard, re.IGNORECASE)
        is_credit = re.search(r"requires more credits|monthly limit|only afford", heard, re.IGNORECASE)
        return bool(is_rate or is_credit)
    if what == "output":
        return bool(re.search(r"more credits|only afford|unsupported parameter", heard, re.IGNORECASE))
    if what == "parameter":
        return bool(re.search(_NO_PARAMETER, heard, re.IGNORECASE))
    if what == "credit":
        return bool(re.search(r"rate_limit_exceeded|tokens per (min|day)", heard, re.IGNORECASE))
    return False


def _limits(what: RejectionKind, heard: str, body: object) -> dict[str, int | None]:
    """The numbers that it named."""
    if what == "window":
        own = {"window": _own(body, "n_ctx"), "sent": _own(body, "n_prompt_tokens")}
        found = own if own["window"] else _first(_LENGTHS, heard)
        window = found.get("window") or 0
        return {"window_tokens": window if window >= _LEAST_WINDOW else None, "sent_tokens": found.get("sent")}
    if what in ("output", "credit"):
        found = _first(_OUTPUTS, heard)
        over = found.get("over")
        return {"output_tokens": over - 1 if over else found.get("output")}
    return {}


def _first(patterns: Iterable[str], heard: str) -> dict[str, int | None]:
    """The numbers of the first pattern that finds one that can be a number of tokens."""
    for pattern in patterns:
        found = re.search(pattern, heard, re.IGNORECASE)
        if found is None:
            continue
        numbers = {name: int(re.sub(r"\D", "", text)) for name, text in found.groupdict().items() if text}
        if any(number in _PLAUSIBLE_TOKENS for name, number in numbers.items() if name != "sent"):
            return {**numbers}
    return {}


def _name(what: RejectionKind, heard: str, body: object) -> str:
    """The tool or the parameter that it named, or ""."""
    if what == "schema":
        named = [found["name"] for found in re.finditer(_TOOL_NAMES, heard, re.IGNORECASE)]
        places = [f"tools[{found['place']}]" for found in re.finditer(_TOOLS, heard)]
        places += [f"tools[{place}]" for place in _places(body, 0)]
        return ",".join(dict.fromkeys(named or places))
    if what == "pictures":
        return "these" if re.search(_THESE, heard, re.IGNORECASE) else ""
    return _parameter(heard) if what == "parameter" else ""


def _parameter(heard: str) -> str:
    told: list[str] = []
    for pattern in _PARAMETERS:
        for found in re.finditer(pattern, heard, re.IGNORECASE):
            told += [text for text in found.groupdict().values() if text]
    plain = [re.sub(r"(?<=[a-z])([A-Z])", r"_\1", one).lower() for one in told if one]
    name = next((one for one in plain if one not in _NO_PARAMETERS and ("_" in one or one in _KNOWN)), "")
    return _OTHER_NAMES.get(name, name)


_KNOWN = frozenset({"temperature", "stream", "seed", "stop", "user", "store", "reasoning", "thinking", "think", "n",
                    "logprobs", "metadata", "include", "verbosity", "tool", "mirostat", "k"})  # fmt: skip


def _inner(body: object) -> Mapping[str, Any]:
    """The error of a body, where it is an object."""
    one = body[0] if isinstance(body, list) and body else body
    error = one.get("error", one) if isinstance(one, dict) else {}
    return error if isinstance(error, dict) else {}


def _own(body: object, key: str) -> int | None:
    value = _inner(body).get(key)
    return value if isinstance(value, int) and value in _PLAUSIBLE_TOKENS else None


def _words(value: object, level: int) -> Iterable[str]:
    """All that the body says in words, the innermost sentence first: texts in texts are opened."""
    if level > _LEVELS:
        return
    if isinstance(value, str):
        inner = _json_in(value)
        if inner is not None:
            yield from _words(inner, level + 1)
        if inner is None or " - " in value[:200]:
            yield value[:_MOST_CHARACTERS]
    elif isinstance(value, list):
        for one in value[:50]:
            yield from _words(one, level + 1)
    elif isinstance(value, dict):
        yield from _words_of(value, level)


def _words_of(value: Mapping[str, Any], level: int) -> Iterable[str]:
    generic = value.get("message") == "Provider returned error"
    for key in ("metadata", "raw", "error", "message", "detail", "details", "msg", "error_message", "title"):
        if key in value and not (key == "message" and generic):
            yield from _words(value[key], level + 1)
    where = value.get("loc", value.get("path"))
    if isinstance(where, list):
        yield f"at body.{'.'.join(map(str, where)).removeprefix('body.')}"
    for key in ("param", "type", "code", "status"):
        if isinstance(value.get(key), str):
            yield f"{key}: {value[key]}"


def _json_in(text: str) -> object:
    """JSON that stands in a text, as gateways wrap what another server said; None where there is none."""
    start = min((at for at in (text.find("{"), text.find("[\n")) if at >= 0), default=-1)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    if start < 0 or end <= start:
        return None
    for whole in (text[start:end], text[start:end].replace('\\"', '"')):
        try:
            found = parsed(whole[:_MOST_CHARACTERS])
        except ValueError:
            continue
        return found if isinstance(found, (dict, list)) else None
    return None


def _places(value: object, level: int) -> Iterable[int]:
    """Places of tools in the paths of a validator: [13, "function", "parameters"], ["body", "tools", 3, …]."""
    if level > _LEVELS:
        return
    if isinstance(value, str):
        yield from _places(_json_in(value), level + 1)
    elif isinstance(value, dict):
        for key, one in value.items():
            path = [step for step in one if step not in ("body", "tools")] if isinstance(one, list) else []
            if key in ("path", "loc") and path and isinstance(path[0], int) and "messages" not in one:
                yield path[0]
            else:
                yield from _places(one, level + 1)
    elif isinstance(value, list):
        for one in value[:50]:
            yield from _places(one, level + 1)


def _page(text: str) -> Iterable[str]:
    """Return what a page says that came in place of an answer: its title; a plain text as it is."""
    found = re.search(_TITLES, text[:_MOST_CHARACTERS], re.IGNORECASE | re.DOTALL)
    if found is not None:
        yield " ".join(found["title"].split())
    elif text.strip() and not text.lstrip().startswith("<"):
        yield from _words(text.strip(), 0)
