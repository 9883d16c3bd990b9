"""What OpenAI's Responses refuse, in their words; shapes and late tools are checked by the scripted server's own rules.

platform.openai.com/docs/guides/reasoning; github.com/openai/openai-node/issues/1567, vercel/ai/issues/7099,
0xPlaygrounds/rig/issues/751, continuedev/continue/issues/11994 (read 2026-11-27).
"""

from typing import Any

from tests import scripted_responses
from tests.model_servers.strict_chat import Looked, said
from tests.model_servers.words import Refusal

_KINDS = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def _kind(item: dict[str, Any]) -> str:
    return str(item.get("type", "message"))


def ids(looked: Looked) -> Refusal | None:
    """Ids begin with their kind, each once; ids of calls have at most 64 characters."""
    seen: set[str] = set()
    for at, item in enumerate(looked.body["input"]):
        item_id, kind = item.get("id"), _kind(item)
        if item_id and not str(item_id).startswith(_KINDS.get(kind, "")):
            return said(f"Invalid 'input[{at}].id': '{item_id}'. Expected an ID that begins with '{_KINDS[kind]}'.")
        if item_id and item_id in seen:
            return said(
                f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            )
        seen.add(str(item_id))
        if len(str(item.get("call_id", ""))) > 64:
            return said(f"Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length 64.")
    return None


def pairs(looked: Looked) -> Refusal | None:
    """Reasoning stands directly ahead of what followed it, and what followed reasoning stands behind it."""
    items = looked.body["input"]
    for at, item in enumerate(items):
        following = _kind(items[at + 1]) if at + 1 < len(items) else ""
        is_followed = following in ("function_call", "reasoning") or (
            following == "message" and items[at + 1].get("role") == "assistant"
        )
        if _kind(item) == "reasoning" and not is_followed:
            return said(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
            )
        given = looked.memory.calls.get(str(item.get("call_id", "")))
        if _kind(item) != "function_call" or not item.get("id") or not given:
            continue
        thought = next((each for each in given[-1]["parts"] if each["type"] == "reasoning"), None)
        sent = [each.get("id") for each in items[:at]]
        if thought is not None and thought["id"] not in sent:
            return said(
                f"Item '{item['id']}' of type 'function_call' was provided without its required 'reasoning' item: "
                f"'{thought['id']}'."
            )
    return None


def sealed(looked: Looked) -> Refusal | None:
    """Reasoning that is not stored there comes back sealed, as it was given."""
    for item in looked.body["input"]:
        if _kind(item) != "reasoning":
            continue
        if not item.get("encrypted_content"):
            return said(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input."
            )
        if not isinstance(item.get("summary"), list):
            return said("Missing required parameter: 'input[1].summary'.")
        if not looked.memory.has(seal_of(item)):
            return said(
                "The encrypted content c2Vh could not be verified. Reason: Encrypted content could not be decrypted or "
                "parsed."
            )
    return None


def seal_of(item: dict[str, Any]) -> dict[str, Any]:
    """What of a reasoning item is checked."""
    return {key: item.get(key) for key in ("type", "id", "encrypted_content")}


def answered(looked: Looked) -> Refusal | None:
    """Each call has its output, each output its call."""
    called = [str(item.get("call_id")) for item in looked.body["input"] if _kind(item) == "function_call"]
    given = [str(item.get("call_id")) for item in looked.body["input"] if _kind(item) == "function_call_output"]
    if lost := [each for each in called if each not in given]:
        return said(f"No tool output found for function call {lost[0]}.")
    if odd := [each for each in given if each not in called]:
        return said(f"No tool call found for function call output with call_id {odd[0]}.")
    return None


def rest(looked: Looked) -> Refusal | None:
    """Everything else that the scripted server knows to be refused."""
    found = scripted_responses.problems(dict(looked.body), {})
    return said("; ".join(found)) if found else None
