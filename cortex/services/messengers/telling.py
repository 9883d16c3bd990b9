"""The log of a chat as messages: pure. A message ends where a person would want it: an answer, a question, an end.

Calls of tools are a line each, ahead of the words that follow them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.events import Event
from cortex.ports.messengers import Button
from cortex.services.messengers.words import EXPIRED, STOPPED
from cortex.services.turns.approval_weight import Weighed

ON_THE_PAGE = "You wrote on the page:"
HEAVY = "Answer it on the page:"
LONG = "This is only its beginning. Read the whole of it, and answer, on the page:"
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

    `group`: the messenger of a group's chat, where others read: only turns that came by it are told, and no question;
    "" for a person's own chat. `hidden`: the other turns. `living`: those that write, `waiting`: for an answer.
    `answered`: the questions that were, since this was last emptied.
    """

    link: str
    can_press: Callable[[str, Weighed], bool]
    group: str = ""
    silent: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    titles: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    living: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    answered: list[str] = field(default_factory=list)

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
        if turn in self.hidden:
            return self._passed(event, turn)
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
                made = self._message(event, turn, STOPPED if data["state"] == "stopped" else "")
                self._forget(turn)
                return made
            case _:
                self._note(event, data, turn)
                return None

    def take_answered(self) -> Sequence[str]:
        """Give the questions that were answered since, once."""
        found = tuple(self.answered)
        self.answered.clear()
        return found

    def learn(self, events: Iterable[Event]) -> None:
        """Know of a turn what was told of it before: whose it is, and what its calls do."""
        for event in events:
            if event.kind == "turn.end":
                self.living.discard(event.turn_id or "")
                self.waiting.discard(event.turn_id or "")
            else:
                self._said(event)
        self.lines.clear()

    def _passed(self, event: Event, turn: str) -> ToldMessage | None:
        """Tell nothing of it in a group; behind its end the log counts as told."""
        if event.kind != "turn.end":
            return None
        self._forget(turn)
        return ToldMessage(seq=event.seq)

    def _forget(self, turn: str) -> None:
        """It is over; should more come of it, it is learned of anew."""
        self.silent.discard(turn)
        self.hidden.discard(turn)
        self.living.discard(turn)
        self.waiting.discard(turn)
        if not self.living and not self.waiting:
            self.titles.clear()

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
        if self.group and data.get("via") != self.group:
            self.hidden.add(turn)
            return None
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
        if data["state"] != "asked":
            self._go_on(data, turn)
            is_told = data["state"] == "expired" and not self.group
            return self._message(event, turn, EXPIRED) if is_told else None
        if turn in self.living:  # until it is answered nobody writes
            self.living.discard(turn)
            self.waiting.add(turn)
        if self.group:  # a person's matters are put to them alone
            return None
        weighed = Weighed(
            weight=data.get("weight", "high"), is_lasting=bool(data.get("is_lasting")), leaves=bool(data.get("leaves"))
        )
        lines = [f"**{plain(str(data['verb']))}**", plain(str(data["destination"]))]
        detail = str(data.get("detail") or "")
        if detail:
            lines.append(_fenced(detail[:DETAIL]))
        if data.get("why"):
            lines.append(plain(str(data["why"])))
        buttons: tuple[Button, ...] = ()
        if len(detail) > DETAIL:  # nobody allows what they were not shown
            lines.append(f"{LONG} {self.link}")
        elif self.can_press(str(data["tool"]), weighed):
            id = data["approval"]
            buttons = (Button(words="Allow", choice=f"y:{id}"), Button(words="Deny", choice=f"n:{id}"))
        else:
            lines.append(f"{HEAVY} {self.link}")
        made = self._message(event, turn, "\n\n".join(filter(None, lines)))
        return ToldMessage(seq=made.seq, text=made.text, buttons=buttons, approval=data["approval"])

    def _go_on(self, data: Mapping[str, Any], turn: str) -> None:
        """Learn that a question was answered, or closed."""
        self.answered.append(data["approval"])
        if turn in self.waiting:
            self.waiting.discard(turn)
            self.living.add(turn)

    def _message(self, event: Event, turn: str, text: str) -> ToldMessage:
        ahead = "  \n".join(self.lines)
        self.lines.clear()
        whole = "\n\n".join(filter(None, (ahead, text)))
        return ToldMessage(seq=event.seq, text=whole, is_silent=turn in self.silent)


def _fenced(text: str) -> str:
    """The text as it is, between marks that do not stand in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def plain(text: str) -> str:
    """Words that are no markup, on one line each."""
    return text.translate(MARKS)
