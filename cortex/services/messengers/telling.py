"""The log of a chat as messages: pure. A message ends where a person would want it: an answer, a question, an end.

Calls of tools are a line each, ahead of the words that follow them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.events import Event
from cortex.ports.messengers import Button
from cortex.services.messengers.words import EXPIRED, STOPPED
from cortex.services.turns.approval_weight import Weighed

ON_THE_PAGE = "You wrote on the page:"
HEAVY = "Answer it on the page:"
BETWEEN = ("tools_discover", "tool_call")  # looking for a tool is no deed
DONE, FAILED = "✓", "✗"
DETAIL = 1_500
# As `services/integrations/mcp.py` keeps what came with an answer: under a name that is made of its content.
PICTURE = re.compile(r"kept as (mcp/[0-9a-f]{24}\.(?:png|jpg|gif|webp))\]")
MARKS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#~|"})


class ToldMessage(Struct, frozen=True, kw_only=True):
    """A message that goes out. `seq`: of the row behind which the log was told then; `text` "": only that.

    `approval`: the question that it puts. `pictures`: paths of those that a call gave, which go ahead of the text.
    """

    seq: int
    text: str = ""
    pictures: tuple[str, ...] = ()
    buttons: tuple[Button, ...] = ()
    is_silent: bool = False
    approval: str = ""


class Telling(Struct, kw_only=True):
    """Folds rows into messages. `silent`: turns of the page. `titles`: what calls do, by their ids.

    `link`: the address of the chat's page; `can_press`: whether a question of this tool may be answered by a button.
    """

    link: str
    can_press: Callable[[str, Weighed], bool]
    silent: set[str]
    titles: dict[str, str]
    lines: list[str]
    living: set[str]

    def messages(self, events: Iterable[Event]) -> list[ToldMessage]:
        """The messages that these rows make; what ends none waits in `lines`, to be told from these rows again."""
        self.lines.clear()
        found = []
        for event in events:
            said = self._said(event)
            if said is not None:
                found.append(said)
        return found

    def _said(self, event: Event) -> ToldMessage | None:
        data, turn = event.payload, event.turn_id or ""
        match event.kind:
            case "message":
                return self._asked(event, data, turn)
            case "approval":
                return self._question(event, data, turn)
            case "tool.result" if found := self._pictures(data):
                self._note(event, data, turn)
                return replace(self._message(event, turn, ""), pictures=found)
            case "part.end":
                is_answer = data.get("kind") != "thinking" and data["text"].strip() and not data.get("is_partial")
                return self._message(event, turn, data["text"]) if is_answer else None
            case "error":
                return self._message(event, turn, plain(str(data["text"])))
            case "turn.end":
                self.living.discard(turn)
                return self._message(event, turn, STOPPED if data["state"] == "stopped" else "")
            case _:
                self._note(event, data, turn)
                return None

    def _note(self, event: Event, data: Mapping[str, Any], turn: str) -> None:
        """Keep what is told with the next message."""
        match event.kind:
            case "turn.start":
                self.living.add(turn)
            case "tool.call" if data["name"] not in BETWEEN:
                self.titles[data["call"]] = str(data.get("title") or data["name"])
            case "tool.result":
                self.lines += self._line(data)
            case "notice" if data.get("level") == "warn":
                self.lines.append(f"_{plain(str(data['text']))}_")
            case _:
                pass

    def _asked(self, event: Event, data: Mapping[str, Any], turn: str) -> ToldMessage | None:
        """Say what its person wrote elsewhere. A turn that goes on, or that an agent ended, is told by its answer."""
        if data.get("via") or data.get("agent") or data.get("resumed"):
            return None
        self.silent.add(turn)
        quoted = "\n".join(f"> {plain(line)}" for line in str(data["text"]).splitlines())
        return self._message(event, turn, f"{ON_THE_PAGE}\n\n{quoted}")

    def _pictures(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what a call gave to look at."""
        found = PICTURE.findall(str(data.get("text", ""))) if data["state"] == "ok" else ()
        return tuple(dict.fromkeys(found))

    def _line(self, data: Mapping[str, Any]) -> list[str]:
        title = plain(self.titles.get(data["call"], ""))
        if not title or data["state"] == "refused":  # its question says so, or the model does
            return []
        return [f"{DONE if data['state'] == 'ok' else FAILED} _{title}_"]

    def _question(self, event: Event, data: Mapping[str, Any], turn: str) -> ToldMessage | None:
        if data["state"] == "expired":
            return self._message(event, turn, EXPIRED)
        if data["state"] != "asked":
            return None
        weighed = Weighed(
            weight=data.get("weight", "high"), is_lasting=bool(data.get("is_lasting")), leaves=bool(data.get("leaves"))
        )
        lines = [f"**{plain(str(data['verb']))}**", plain(str(data["destination"]))]
        detail = str(data.get("detail") or "")[:DETAIL]
        if detail:
            lines.append(f"```\n{detail.replace('```', '`')}\n```")
        if data.get("why"):
            lines.append(plain(str(data["why"])))
        buttons: tuple[Button, ...] = ()
        if self.can_press(str(data["tool"]), weighed):
            id = data["approval"]
            buttons = (Button(words="Allow", choice=f"y:{id}"), Button(words="Deny", choice=f"n:{id}"))
        else:
            lines.append(f"{HEAVY} {self.link}")
        made = self._message(event, turn, "\n\n".join(filter(None, lines)))
        return ToldMessage(seq=made.seq, text=made.text, buttons=buttons, approval=data["approval"])

    def _message(self, event: Event, turn: str, text: str) -> ToldMessage:
        ahead = "  \n".join(self.lines)
        self.lines.clear()
        whole = "\n\n".join(filter(None, (ahead, text)))
        return ToldMessage(seq=event.seq, text=whole, is_silent=turn in self.silent)


def plain(text: str) -> str:
    """Words that are no markup, on one line each."""
    return text.translate(MARKS)
