"""What Anthropic refuses, in its words; the shapes of late tools are checked by the scripted server's own rules.

docs.claude.com/en/docs/build-with-claude/extended-thinking and /tool-use,
github.com/anthropics/claude-code/issues/63574 (read 2026-11-27).
"""

import re
from typing import Any

from tests import scripted_anthropic
from tests.model_servers.strict_chat import Looked, said
from tests.model_servers.words import Refusal

_ID = re.compile(r"^[a-zA-Z0-9_-]+$")


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def texts(looked: Looked) -> Refusal | None:
    """No empty text, no empty message, no blank at the end of an answer that is to be gone on with."""
    for at, message in enumerate(looked.messages):
        if not blocks(message):
            return said(f"messages.{at}: all messages must have non-empty content except for the optional final one")
        if any(block.get("type") == "text" and not block.get("text", "").strip() for block in blocks(message)):
            return said("messages: text content blocks must be non-empty")
    last = looked.messages[-1]
    if last["role"] == "assistant" and blocks(last)[-1].get("text", "") != blocks(last)[-1].get("text", "").rstrip():
        return said("messages: final assistant content cannot end with trailing whitespace")
    if last["role"] == "assistant":
        return said(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    return None


def calls(looked: Looked) -> Refusal | None:
    """Ids by their pattern, each once; each call is answered in the next message, ahead of words."""
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(looked.messages):
        results = [block.get("tool_use_id") for block in blocks(message) if block.get("type") == "tool_result"]
        if lost := [each for each in waiting if each not in results]:
            return said(
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(lost)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
                "message."
            )
        if odd := [each for each in results if each not in waiting]:
            return said(
                f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {odd[0]}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        waiting = [str(block.get("id")) for block in blocks(message) if block.get("type") == "tool_use"]
        for call_id in waiting:
            if not _ID.match(call_id):
                return said(f"messages.{at}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            if call_id in seen:
                return said("messages: `tool_use` ids must be unique")
            seen.add(call_id)
    return None


def thinking(looked: Looked) -> Refusal | None:
    """Thinking comes back as it was given; with thinking on, calls of the turn that is going on stand behind some."""
    assistants = [(at, each) for at, each in enumerate(looked.messages) if each["role"] == "assistant"]
    for at, message in assistants:
        for place, block in enumerate(blocks(message)):
            if block.get("type") not in ("thinking", "redacted_thinking") or looked.memory.has(block):
                continue
            if block.get("signature") != scripted_anthropic.SIGNATURE:
                return said(f"messages.{at}.content.{place}: Invalid `signature` in `thinking` block")
            return said(
                f"messages.{at}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the original response."
            )
    # Adaptive thinking may leave it out, and need not begin with it (docs: "Adaptive thinking").
    if (looked.body.get("thinking") or {}).get("type") != "enabled" or not assistants:
        return None
    at, last = assistants[-1]
    begins = blocks(last)[0].get("type")
    is_open = blocks(looked.messages[-1])[0].get("type") == "tool_result"
    if is_open and begins not in ("thinking", "redacted_thinking"):
        return said(
            f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{begins}`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from "
            "previous turns. To avoid this requirement, disable `thinking`."
        )
    return None


def is_thinking(body: Any) -> bool:
    """Whether the request switches thinking on."""
    return (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")


def settings(looked: Looked) -> Refusal | None:
    """What does not go with thinking."""
    if not is_thinking(looked.body):
        return None
    if looked.body.get("temperature", 1) != 1:
        return Refusal(kind="parameter", facts={"param": "temperature"})
    if (looked.body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        return said("Thinking may not be enabled when tool_choice forces tool use.")
    budget = looked.body["thinking"].get("budget_tokens", 0)
    if budget and looked.body["max_tokens"] <= budget:
        return said("`max_tokens` must be greater than `thinking.budget_tokens`.")
    return None


def rest(looked: Looked, headers: dict[str, str]) -> Refusal | None:
    """Everything else that the scripted server knows to be refused."""
    found = scripted_anthropic.problems(dict(looked.body), headers)
    return said("; ".join(found)) if found else None
