"""What the coding agent asks of a model: each question is one call, within its person's budget and in the ledger."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from cortex.base.ids import new_id
from cortex.base.messages import Message, assistant, user
from cortex.base.turn import Reply
from cortex.base.user import User
from cortex.integrations.aider.door import Completion, ModelRefused
from cortex.ports.loop import Request
from cortex.services.turns.lone_calls import LoneCall, LoneCalls

ROLE = "coder"
NO_WORDS = "The coding agent asked the model for something that Cortex does not pass on."


class CodingModel(Struct, frozen=True, kw_only=True):
    """Asks in the agent's place, so that no key goes to it."""

    calls: LoneCalls

    def completion(self, owner: User, run_id: str, model: str) -> Completion:
        """Return what answers this run; `model` "": that of the role coder."""

        async def complete(asked: dict[str, Any]) -> dict[str, Any]:
            sent = _request(asked.get("messages"))
            call = LoneCall(id=f"coding:{run_id}:{new_id()}", role=ROLE, channel="agent")
            reply = await self.calls.ask(owner, call, sent, model)
            if reply.message is None:
                raise ModelRefused(reply.failure)
            return _as_openai(reply, call.id)

        return complete


def _request(given: object) -> Request:
    """The words of an OpenAI request; neighbours of one speaker become one message. ModelRefused for anything else."""
    system: list[str] = []
    said: list[tuple[str, str]] = []
    for one in given if isinstance(given, list) else [None]:
        if not isinstance(one, dict) or not isinstance(one.get("content"), str):
            raise ModelRefused(NO_WORDS)
        role, text = one.get("role"), one["content"]
        if role in ("system", "developer"):
            system.append(text)
        elif said and said[-1][0] == role:
            said[-1] = (str(role), f"{said[-1][1]}\n\n{text}")
        else:
            said.append((str(role), text))
    messages: Sequence[Message] = [assistant(text) if role == "assistant" else user(text) for role, text in said]
    return Request(system="\n\n".join(system), messages=tuple(messages))


def _as_openai(reply: Reply, id: str) -> dict[str, Any]:
    text = reply.message.text if reply.message else ""
    usage = {"prompt_tokens": reply.usage.input_tokens, "completion_tokens": reply.usage.output_tokens}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length" if reply.finish in ("length", "repeats") else "stop",
    }
    head = {"id": id, "object": "chat.completion", "created": 0, "model": "cortex", "choices": [choice]}
    return {**head, "usage": {**usage, "total_tokens": sum(usage.values())}}
