"""What servers of chat completions refuse, rule by rule; which rules a server has stands in its row.

A rule looks at one request and gives the first thing that is refused, in a kind of `words.py`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.model_servers.memory import Memory, merged, unnamed
from tests.model_servers.words import Refusal

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
_DUMMIES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_PLAIN_KEYS = {
    "user": {"role", "content", "name"},
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio"},
    "tool": {"role", "content", "tool_call_id"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One request as a rule sees it. `fields`: those of the body that the server knows; None: it takes any.

    `message_fields`: more that an assistant's message may hold.
    """

    body: Mapping[str, Any]
    memory: Memory
    fields: frozenset[str] | None = None
    message_fields: frozenset[str] = frozenset()

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Its messages."""
        return list(self.body["messages"])

    def by_role(self, role: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Those of this role with their places."""
        return ((at, each) for at, each in enumerate(self.messages) if each.get("role") == role)

    @property
    def turn_from(self) -> int:
        """Where the turn that is going on begins: behind the last words of the user's."""
        return max((at for at, each in self.by_role("user")), default=-1) + 1


Rule = Callable[[Looked], Refusal | None]


def said(text: str) -> Refusal:
    """A refusal in these words."""
    return Refusal(kind="request", facts={"said": text})


def shape(looked: Looked) -> Refusal | None:
    """What no server reads: no messages, unknown roles, odd names, arguments that are no JSON text, no content."""
    messages = looked.body.get("messages")
    if not isinstance(messages, list) or not messages:
        return said("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in _PLAIN_KEYS:
            return said(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user' and 'tool'.")
        if role != "assistant" and not _is_content(message.get("content")):
            return said(f"Invalid value for 'content' of messages.{at}: expected a string, got null.")
        for call in message.get("tool_calls") or []:
            function = call.get("function", {})
            if call.get("type") != "function" or not _NAME.match(str(function.get("name"))):
                return said(f"Invalid 'messages[{at}].tool_calls[0].function.name': string does not match pattern.")
            if not isinstance(function.get("arguments"), str):
                return said(f"messages[{at}]: arguments must be a string")
    return None


def _is_content(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(part, dict) for part in content))


def tools(looked: Looked) -> Refusal | None:
    """OpenAI's checks of the tools and of what goes with them."""
    declared = looked.body.get("tools")
    if declared == []:
        return said("Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array.")
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in looked.body and not declared:
            return said(f"'{name}' is only allowed when 'tools' are specified.")
    if looked.body.get("stream_options") and not looked.body.get("stream"):
        return said("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
    names = [tool.get("function", {}).get("name") for tool in declared or []]
    for at, name in enumerate(names):
        if not isinstance(name, str) or not _NAME.match(name) or names.count(name) > 1:
            return said(f"Invalid 'tools[{at}].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.")
    return None


def answered(looked: Looked) -> Refusal | None:
    """Each call is answered directly behind, each result answers one."""
    waiting: list[str] = []
    for message in [*looked.messages, {"role": "end"}]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return said(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return said(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
        if message["role"] == "assistant":
            waiting = [str(call.get("id")) for call in message.get("tool_calls") or []]
            if len(set(waiting)) < len(waiting) or "" in waiting:
                return said(f"Duplicate or empty tool call ids: {waiting}")
    return None


def arguments(looked: Looked) -> Refusal | None:
    """Templates of local servers and proxies parse the arguments of every call."""
    for _, message in looked.by_role("assistant"):
        for call in message.get("tool_calls") or []:
            try:
                is_object = isinstance(json.loads(call["function"]["arguments"]), dict)
            except ValueError:
                is_object = False
            if not is_object:
                return said("Failed to parse tool call arguments as JSON")
    return None


def nothing_said(looked: Looked) -> Refusal | None:
    """An assistant's message holds words or calls (OpenAI: a string; Mistral in its own words)."""
    for _, message in looked.by_role("assistant"):
        if not message.get("content") and not message.get("tool_calls"):
            return said("Assistant message must have either content or tool_calls, but not none.")
    return None


def long_ids(looked: Looked) -> Refusal | None:
    """OpenAI: ids of calls have at most 40 characters."""
    for at, message in looked.by_role("assistant"):
        for call in message.get("tool_calls") or []:
            if len(call["id"]) > 40:
                return said(
                    f"Invalid 'messages[{at}].tool_calls[0].id': string too long. Expected a string with maximum "
                    f"length 40, but got a string with length {len(call['id'])} instead."
                )
    return None


def nine_ids(looked: Looked) -> Refusal | None:
    """Mistral: exactly nine letters and digits."""
    for _, message in looked.by_role("assistant"):
        for call in message.get("tool_calls") or []:
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                return Refusal(kind="ids", facts={"id": call["id"]})
    return None


def mistral_order(looked: Looked) -> Refusal | None:
    """Mistral: no user behind a tool, no system inside, a user or a tool at the end (mistral-common's validator)."""
    after = {
        "system": {"system", "user", "assistant"},
        "user": {"assistant", "system", "user"},
        "assistant": {"assistant", "user", "tool"},
        "tool": {"assistant", "tool"},
    }
    before = ""
    for message in looked.messages:
        role = message["role"]
        if before and role not in after[before]:
            return Refusal(kind="order", facts={"said": f"Unexpected role '{role}' after role '{before}'"})
        before = role
    if before not in ("user", "tool"):
        words = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        return Refusal(kind="order", facts={"said": words})
    return None


def alternates(looked: Looked) -> Refusal | None:
    """Chat templates (Mistral 7B, Gemma, Llama 2): user and assistant take turns; results count as nobody's turn."""
    spoken = [each for each in looked.messages if each["role"] in ("user", "assistant") and not each.get("tool_calls")]
    for at, message in enumerate(spoken):
        if message["role"] != ("user", "assistant")[at % 2]:
            return Refusal(kind="template", facts={"said": f"After the optional system message, {_lowered()}"})
    return None


def _lowered() -> str:
    return _ALTERNATE[0].lower() + _ALTERNATE[1:]


def system_first(looked: Looked) -> Refusal | None:
    """Chat templates (Qwen, Gemma): one message of the system's, at the beginning."""
    if any(at for at, each in enumerate(looked.messages) if each["role"] in ("system", "developer")):
        return Refusal(kind="template", facts={"said": "System message must be at the beginning."})
    return None


def gemini_order(looked: Looked) -> Refusal | None:
    """Gemini: calls stand behind a user or behind results, and each has its result."""
    before = ""
    for message in looked.messages:
        if message.get("tool_calls") and before not in ("user", "tool"):
            words = "Please ensure that function call turn comes immediately after a user turn or after a function "
            return said(f"{words}response turn.")
        before = message["role"]
    return None


def gemini_signatures(looked: Looked) -> Refusal | None:
    """Gemini 3: the first call of each step of the turn that is going on bears its signature, as it was given."""
    for at, message in looked.by_role("assistant"):
        calls = message.get("tool_calls") or []
        if not calls:
            continue
        extra = calls[0].get("extra_content") or {}
        signature = extra.get("google", {}).get("thought_signature")
        if signature and signature not in (*looked.memory.signatures, *_DUMMIES):
            return said("Corrupted thought signature.")
        if not signature and at >= looked.turn_from:
            facts = {"tool": calls[0]["function"]["name"], "index": at + 1}
            return Refusal(kind="signature", facts=facts)
    return None


def gemini_schemas(looked: Looked) -> Refusal | None:
    """Gemini: keywords of JSON schema that it does not know."""
    unknown = {"$schema", "const", "exclusiveMinimum", "exclusiveMaximum", "propertyNames", "patternProperties"}
    for at, tool in enumerate(looked.body.get("tools") or []):
        found = unknown & _keywords(tool["function"].get("parameters", {}))
        if found:
            return Refusal(kind="schema", facts={"index": at, "keyword": min(found)})
    return None


def _keywords(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for each in schema for name in _keywords(each)}
    if not isinstance(schema, dict):
        return set()
    inner = {name for key, each in schema.items() if key != "properties" for name in _keywords(each)}
    named = schema.get("properties")
    return set(schema) | inner | {name for each in (named or {}).values() for name in _keywords(each)}


def openrouter_details(looked: Looked) -> Refusal | None:
    """OpenRouter: reasoning details of a step with calls come back whole and unaltered, of no other server any."""
    for at, message in looked.by_role("assistant"):
        details = merged(message.get("reasoning_details") or [])
        calls = [call["id"] for call in message.get("tool_calls") or []]
        for detail in details:
            is_given = json.dumps(unnamed(detail), sort_keys=True) in looked.memory.sealed
            if not is_given and detail.get("data") not in _DUMMIES:
                return said(f"messages.{at}.content.0: Invalid `signature` in `thinking` block")
            # github.com/UKGovernmentBEIS/inspect_ai/issues/3986: the signature is its call's.
            if detail.get("format") == "google-gemini-v1" and detail.get("id") and detail["id"] not in calls[:1]:
                return said("Unable to submit request because Thought signature is not valid")
        if at < looked.turn_from or not calls or any(detail.get("data") in _DUMMIES for detail in details):
            continue
        given = looked.memory.answers_of(message)
        model = str(looked.body.get("model", ""))
        whole = [[unnamed(one) for one in merged(each.get("reasoning_details") or [])] for each in given]
        is_lost = bool(given) and [unnamed(detail) for detail in details] not in whole
        if is_lost and "gemini" not in model:
            return said(f"messages.{at}.content.0.type: Expected `thinking`, but found `tool_use`.")
        if is_lost or (not given and "gemini" in model and not details):
            return Refusal(kind="signature", facts={})
    return None


def litellm_blocks(looked: Looked) -> Refusal | None:
    """LiteLLM ahead of Claude: thinking blocks of a step with calls come back as they were."""
    for at, message in looked.by_role("assistant"):
        blocks = merged(message.get("thinking_blocks") or [])
        if any(json.dumps(block, sort_keys=True) not in looked.memory.sealed for block in blocks):
            return said(f"AnthropicException - messages.{at}.content.0: Invalid `signature` in `thinking` block")
        given = [each for each in looked.memory.answers_of(message) if each.get("thinking_blocks")]
        if at >= looked.turn_from and given and not blocks:
            return said(
                f"AnthropicException - messages.{at}.content.0.type: Expected `thinking`, but found `tool_use`."
            )
    return None


def groq_reasoning(looked: Looked) -> Refusal | None:
    """Groq: reasoning goes back to models of OpenAI's alone (github.com/vercel/ai/pull/8057)."""
    for at, message in looked.by_role("assistant"):
        if "reasoning" in message and "gpt-oss" not in str(looked.body.get("model")):
            return said(f"messages[{at}].reasoning: reasoning is not supported with this model")
    return None


def deepseek_reasoning(looked: Looked) -> Refusal | None:
    """DeepSeek's thinking mode: every message with calls bears `reasoning_content`, be it empty."""
    for _, message in looked.by_role("assistant"):
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            return Refusal(kind="thinking", facts={})
    return None


def body_fields(looked: Looked) -> Refusal | None:
    """Only fields of the body that the server knows."""
    for name in looked.body:
        if looked.fields is not None and name not in looked.fields:
            return Refusal(kind="unknown_field", facts={"field": name, "loc": ["body", name]})
    return None


def message_fields(looked: Looked) -> Refusal | None:
    """Only fields of messages that the server knows (Mistral, Groq)."""
    for at, message in enumerate(looked.messages):
        role = message["role"]
        for name in message:
            if name not in _PLAIN_KEYS[role] | (looked.message_fields if role == "assistant" else set()):
                facts = {"field": name, "index": at, "loc": ["body", "messages", at, role, name]}
                return Refusal(kind="message_field", facts=facts)
    return None
