"""The double: the scripted server with the strictness, the words and the manner of one row."""

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cortex.base import tokens
from tests import scripted_anthropic, scripted_openai, scripted_responses
from tests.model_servers import chat_answers, strict_messages, strict_responses
from tests.model_servers.memory import Memory
from tests.model_servers.more_words import BY_ROW
from tests.model_servers.rows import ROWS, Row
from tests.model_servers.spoken import Abilities, Answer, Hang, Manner, Page, Refuse, Said
from tests.model_servers.strict_chat import Looked
from tests.model_servers.words import OPENAI, Refusal, Words, body_of, event_of
from tests.scripted_pipe import Fault, Left, Pipe, Seen, parsed
from tests.scripted_rules import Call, Spoken
from tests.scripted_server import ScriptedServer

_ENDS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_WIRES = {"responses": scripted_responses, "messages": scripted_anthropic, "chat": scripted_openai}


class Double(ScriptedServer):
    """One row's server. `begin` forgets the last scene; `say` scripts the next answers, one for each request taken.

    `refused`: what was refused because of the request itself, in order; `sent`: the bodies that were taken.
    """

    def __init__(self, row: Row) -> None:
        # Each at an address of its own: Cortex knows by the host whose answers stand in a history.
        super().__init__(api_key=f"key-of-{row.id}", host=f"127.0.0.{10 + ROWS.index(row)}")
        self.row = row
        self.begin(row)

    def begin(self, row: Row, abilities: Abilities | None = None) -> None:
        """Start a scene."""
        self.row = row
        self.abilities = abilities or Abilities()
        self.script: deque[Answer] = deque()
        self.memory = Memory()
        self.refused: list[Refusal] = []
        self.sent: list[dict[str, Any]] = []
        self.broken = ""
        self.log.clear()

    def say(self, *answers: Answer | str) -> None:
        """Script the next answers."""
        self.script.extend(Said(text=each) if isinstance(each, str) else each for each in answers)

    @property
    def words(self) -> Words:
        """The row's refusals."""
        return BY_ROW.get(self.row.id, OPENAI)

    async def _route(self, method: str, path: str, headers: dict[str, str], raw: bytes, pipe: Pipe) -> None:
        ends = self.row.path + _ENDS[self.row.wire] if self.row.wire != "messages" else "/v1/messages"
        if method == "GET" and path.endswith("/models"):
            known = [
                {"id": name, "object": "model", "created": 0} for name in (self.row.model, self.row.thinker) if name
            ]
            await pipe.whole(200, {"object": "list", "data": known})
            return
        if method != "POST" or path != ends:
            if path.endswith(tuple(_ENDS.values())):  # what else is looked for there tells which server it is
                self.broken = f"no {method} {path} here"
            await pipe.whole(404, {"error": {"message": f"no {method} {path} here"}})
            return
        seen = Seen(path=path, headers=headers, body=parsed(raw), raw=raw)
        self.log.append(seen)
        pipe.seen = seen
        try:
            await self._take(seen, pipe)
        except Left:
            raise
        except ConnectionError:
            seen.left.set()
            raise
        except Exception as error:  # noqa: BLE001 - the double's own fault must be seen by the scene, not by the log
            self.broken = repr(error)
            await pipe.whole(500, {"error": {"message": repr(error)}})

    async def _take(self, seen: Seen, pipe: Pipe) -> None:
        if not self._is_key(seen.headers):
            await self._refuse_with(Refusal(kind="key", facts={}), pipe)
            return
        if refusal := self._refusal(seen):
            self.refused.append(refusal)
            is_late = refusal.kind == "window" and self.row.window_in == "stream" and seen.body.get("stream")
            await self._refuse_with(refusal, pipe, in_stream=bool(is_late))
            return
        if not self.script:
            self.broken = "a request that no scene expected"
        answer = self.script.popleft() if self.script else Said(text="No answer was scripted.")
        match answer:
            case Refuse():
                told = {"Retry-After": answer.retry_after} if answer.retry_after else {}
                refusal = Refusal(kind=answer.kind, facts=self._facts(seen.body))
                await self._refuse_with(refusal, pipe, in_stream=answer.in_stream, headers=told)
            case Page():
                await pipe.whole(answer.status, answer.body, answer.headers)
            case Hang():
                if answer.phase == "head":
                    await pipe.stream([b": \n\n"], Fault(kind="cut", after_bytes=1), 0.0, self._on)
                raise Left
            case Said():
                self.sent.append(seen.body)
                await self._speak(answer, seen, pipe)

    def _is_key(self, headers: Mapping[str, str]) -> bool:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        # Azure's v1 endpoints take both (learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle), Anthropic
        # takes tokens so.
        return self.api_key in (headers.get(self.row.key_header, ""), bearer)

    async def _refuse_with(
        self, refusal: Refusal, pipe: Pipe, *, in_stream: bool = False, headers: dict[str, str] | None = None
    ) -> None:
        if in_stream:
            await pipe.stream([event_of(self.row.id, self.words, refusal)], None, 0.0, self._on)
            return
        status, body = body_of(self.row.id, self.words, refusal)
        await pipe.whole(status, body, headers)

    def _refusal(self, seen: Seen) -> Refusal | None:
        """The first thing that this server refuses of the request."""
        looked = Looked(
            body=seen.body, memory=self.memory, fields=self.row.fields, message_fields=self.row.message_fields
        )
        found = self._by_wire(looked, seen.headers) or self._by_abilities(seen.body)
        if found is None:
            return None
        facts = {**self._facts(seen.body), **found.facts}
        if found.kind not in self.words:
            kind = "unknown_field" if found.kind == "message_field" else "request"
            found = replace(found, kind=kind if kind in self.words else "request")
        return replace(found, facts={"said": found.kind, **facts})

    def _by_wire(self, looked: Looked, headers: dict[str, str]) -> Refusal | None:
        if self.row.wire == "chat":
            return next(filter(None, (rule(looked) for rule in self.row.rules)), None)
        if self.row.wire == "responses":
            rules = (
                strict_responses.ids,
                strict_responses.answered,
                strict_responses.pairs,
                strict_responses.sealed,
                strict_responses.rest,
            )
            return next(filter(None, (rule(looked) for rule in rules)), None)
        checks = (strict_messages.texts, strict_messages.calls, strict_messages.thinking, strict_messages.settings)
        found = next(filter(None, (rule(looked) for rule in checks)), None)
        return found or strict_messages.rest(looked, headers)

    def _by_abilities(self, body: Mapping[str, Any]) -> Refusal | None:
        can, facts = self.abilities, self._facts(body)
        if can.model and body.get("model") != can.model:
            return Refusal(kind="model", facts={"model": body.get("model")})
        if not can.tools and body.get("tools"):
            return Refusal(kind="tools", facts={})
        if not can.pictures and any(word in json.dumps(body) for word in ('"image_url"', '"image"', '"input_image"')):
            return Refusal(kind="pictures", facts={})
        for name in sorted(can.refuses & set(body)):
            kind = "limit_name" if name == "max_tokens" else "parameter"
            first, *rest = name.split("_")
            camel = first + "".join(map(str.capitalize, rest))
            return Refusal(kind=kind, facts={"param": name, "value": body[name], "camel": camel})
        for at, name in enumerate(_tool_names(body)):
            if can.bad_tool and name == can.bad_tool:
                return Refusal(kind="schema", facts={"tool": name, "index": at, "keyword": "exclusiveMinimum"})
        if can.output and facts["asked"] > can.output:
            return Refusal(kind="output", facts={"limit": can.output})
        if can.window and facts["tokens"] > can.window and self.row.window_in != "silent":
            return Refusal(kind="window", facts={"window": can.window})
        return None

    def _facts(self, body: Mapping[str, Any]) -> dict[str, Any]:
        asked = next((body[name] for name in _LIMITS if name in body), 0)
        total = tokens.count(tokens.minified([body.get("tools"), body.get("system"), *_said(body)]))
        window = self.abilities.window or 4096
        return {
            "model": body.get("model"),
            "tokens": total,
            "asked": asked,
            "total": total + asked,
            "window": window,
            "limit": self.abilities.output or 8192,
        }

    async def _speak(self, said: Said, seen: Seen, pipe: Pipe) -> None:
        self.memory.answers += 1
        body = {"model": "", **seen.body}
        ends: dict[str, Any] = {"finish": "length"} if said.ends else {}
        manner = replace(self.row.manner, **ends, **said.manner)
        if body["model"] not in (self.row.thinker, ""):
            manner = replace(manner, thinks="")
        seen.usage = self._usage_of(said, body, manner)
        if said.is_whole or not body.get("stream"):
            await pipe.whole(200, self._whole(said, manner, body, seen.usage))
            return
        pieces = self._pieces(said, manner, body, seen.usage)
        # Only once: a second pause would come behind the end.
        fault = Fault(kind="pause", after_bytes=sum(map(len, pieces)) * 6 // 10) if said.pauses else None
        if said.breaks:
            half = max(2, len(pieces) // 2)
            if said.breaks == "filter":
                pieces = _filtered(pieces, self.row.wire)
            elif said.breaks == "drop":
                pieces, fault = pieces[:half], Fault(kind="cut", after_bytes=sum(map(len, pieces[:half])))
            else:
                kind = "server" if said.breaks == "error" else "window"
                refusal = Refusal(kind=kind, facts=self._facts(body))
                pieces = [*pieces[:half], event_of(self.row.id, self.words, refusal)]
        if said.packet:
            stream = b"".join(pieces)
            pieces = [stream[at : at + said.packet] for at in range(0, len(stream), said.packet)]
        await pipe.stream(pieces, fault, self.delay_s, self._on)

    def _usage_of(self, said: Said, body: dict[str, Any], manner: Manner) -> dict[str, Any]:
        total = self._facts(body)["tokens"]
        words = said.text + said.thinking + "".join(use.tool + use.text for use in said.calls)
        output = max(1, tokens.count(words))
        if self.row.wire == "chat":
            return chat_answers.usage_of(manner, total, said.cached, output)
        usage: dict[str, Any] = _WIRES[self.row.wire].usage(total, said.cached, output, 0)
        return usage

    def _whole(self, said: Said, manner: Manner, body: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        number = self.memory.answers
        if self.row.wire == "chat":
            answer = chat_answers.whole(said, manner, body, usage, number)
            self.memory.keep(answer["choices"][0]["message"])
            return answer
        wire = _WIRES[self.row.wire]
        made: dict[str, Any] = json.loads(_unique(json.dumps(wire.whole(body, _spoken(said, number), usage)), number))
        if self.row.wire == "messages":
            self.memory.keep_parts(made["content"])
            return made
        is_sealed = "reasoning.encrypted_content" in (body.get("include") or [])
        for item in made["output"]:
            if item["type"] == "reasoning" and not is_sealed:
                del item["encrypted_content"]
        self.memory.keep_parts([*made["output"], *map(strict_responses.seal_of, made["output"])])
        return made

    def _pieces(self, said: Said, manner: Manner, body: dict[str, Any], usage: dict[str, Any]) -> list[bytes]:
        number = self.memory.answers
        if self.row.wire == "chat":
            self.memory.keep(chat_answers.message_of(said, manner, body["model"], number))
            return chat_answers.chunks(said, manner, body, usage, number)
        self._whole(said, manner, body, usage)
        finish = "length" if said.ends else "tool_calls" if said.calls else "stop"
        found = _WIRES[self.row.wire].chunks(body, _spoken(said, number), usage, finish)
        pieces = [_unique(piece.decode(), number).encode() for piece in found]
        if said.ends == "window":  # docs.claude.com/en/docs/build-with-claude/context-windows
            pieces = [piece.replace(b'"max_tokens"', b'"model_context_window_exceeded"') for piece in pieces]
        if self.row.wire == "responses" and "reasoning.encrypted_content" not in (body.get("include") or []):
            seal = f', "encrypted_content": "{scripted_responses.SEALED}"'.encode()
            pieces = [piece.replace(seal, b"") for piece in pieces]
        return [manner.noise + piece.replace(b"\n", manner.newline) for piece in pieces]


_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def _said(body: Mapping[str, Any]) -> Sequence[Any]:
    return body.get("messages") or [body.get("instructions"), *(body.get("input") or [])]


def _tool_names(body: Mapping[str, Any]) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in body.get("tools") or []]


def _unique(text: str, number: int) -> str:
    """Ids of the answer's items: each answer has its own, as with the real ones."""
    for kind in ("rs", "msg", "resp"):
        text = text.replace(f'"{kind}_scripted"', f'"{kind}_scripted{number}"')
    return text


def _spoken(said: Said, number: int) -> Spoken:
    calls = tuple(
        Call(use.id or f"call_{number * 10 + at:06d}", use.tool, use.text) for at, use in enumerate(said.calls)
    )
    return Spoken(text=said.text, calls=calls, thinking=said.thinking)


def _filtered(pieces: list[bytes], wire: str) -> list[bytes]:
    """The answer ended by the provider's filter in its middle."""
    half = pieces[: max(2, len(pieces) // 2)]
    if wire == "messages":
        delta: dict[str, Any] = {
            "type": "message_delta",
            "delta": {"stop_reason": "refusal"},
            "usage": {"output_tokens": 3},
        }
        ends = [delta, {"type": "message_stop"}]
        return [*half, *(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in ends)]
    if wire == "responses":
        response: dict[str, Any] = {
            "id": "resp_x",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "incomplete",
        }
        more: dict[str, Any] = {
            "incomplete_details": {"reason": "content_filter"},
            "output": [],
            "error": None,
            "tools": [],
        }
        more |= {"parallel_tool_calls": True, "tool_choice": "auto", "usage": None}
        event = {"type": "response.incomplete", "response": {**response, **more}, "sequence_number": 99}
        return [*half, f"event: response.incomplete\ndata: {json.dumps(event)}\n\n".encode()]
    choice = {"index": 0, "delta": {}, "finish_reason": "content_filter"}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return [*half, b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"]
