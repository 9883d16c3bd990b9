"""Words carried away: push to one's own devices, mail, Talk rooms. Nothing is called sent that was not."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from cortex.agent.execute import Executor
from cortex.base.errors import ToolFailed
from cortex.base.messages import ToolCall
from cortex.base.user import User
from cortex.ports.outgoing import Mail, Post, Push, PushCount, Room, Talk
from tests.plain_book import PlainBook, PlainDesk
from tests.plain_clients import Phones
from tests.plain_world import TURN
from tests.tool_world import World

AT = datetime(2026, 11, 20, 8, tzinfo=UTC)


@dataclass
class Outbox:
    own: str = "ann@example.org"
    got: dict[str, tuple[tuple[str, ...], str, str]] = field(default_factory=dict)

    async def own_address(self) -> str:
        return self.own

    async def send_mail(self, id: str, to: Sequence[str], subject: str, text: str, thread: Mapping[str, str]) -> None:
        self.got[id] = (tuple(to), subject, text)


class DeadOutbox(Outbox):
    async def send_mail(self, id: str, to: Sequence[str], subject: str, text: str, thread: Mapping[str, str]) -> None:
        raise ToolFailed("The mail server refused it: 535 authentication failed.")


@dataclass
class Rooms:
    """Three rooms; a post per number, as Talk numbers them."""

    known: tuple[Room, ...] = (
        Room(token="t1", name="Family", unread=2),
        Room(token="t2", name="Team north", unread=0),
        Room(token="t3", name="Team south", unread=0),
        Room(token="t4", name="me", unread=0),
    )
    got: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def rooms(self) -> Sequence[Room]:
        return self.known

    async def post(self, id: str, token: str, text: str) -> None:
        self.got[id] = (token, text)

    async def history(self, token: str, most: int, before: int | None) -> Sequence[Post]:
        last = 30 if before is None else before - 1
        return [Post(id=n, author="Bo", text=f"post {n}", at=AT) for n in range(max(1, last - most + 1), last + 1)]


class BusyRooms(Rooms):
    async def rooms(self) -> Sequence[Room]:
        raise ToolFailed("Nextcloud asks to wait: too many requests.")


async def test_a_push_goes_to_the_users_own_devices(world: World, ann: User, ben: User) -> None:
    phones: dict[str, Phones] = defaultdict(Phones)
    world.bound[Push] = phones.__getitem__
    assert "2 devices" in await world.text(ann, "web_push", text=" the wash is done ")
    assert list(phones[ann.id].got.values()) == [("Cortex", "the wash is done")]
    assert phones[ben.id].got == {}


@pytest.mark.parametrize(
    ("pushed", "says"),
    [(PushCount(devices=0, failed=0), "no device for push yet"), (PushCount(devices=0, failed=1), "could be reached")],
    ids=["none", "dead"],
)
async def test_a_push_that_nobody_saw_is_no_success(world: World, ann: User, pushed: PushCount, says: str) -> None:
    world.wired[Push] = Phones(pushed)
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "web_push", text="hello")


@pytest.mark.parametrize(
    ("pushed", "says"),
    [
        (PushCount(devices=0, failed=0, waiting=1), "Not shown yet: 1 device will get it later"),
        (PushCount(devices=1, failed=1, waiting=2), "Pushed to 1 device; 2 devices will get it later; 1 could not be"),
    ],
    ids=["none yet", "some"],
)
async def test_a_push_that_waits_is_not_called_shown(world: World, ann: User, pushed: PushCount, says: str) -> None:
    world.wired[Push] = Phones(pushed)
    assert says in await world.text(ann, "web_push", text="hello")


async def test_a_push_that_reached_some_says_so(world: World, ann: User) -> None:
    world.wired[Push] = Phones(PushCount(devices=1, failed=1))
    assert "1 could not" in await world.text(ann, "web_push", text="hello")


@pytest.mark.parametrize(
    ("to", "addresses"),
    [
        ("ben@example.org", ("ben@example.org",)),
        ("me", ("ann@example.org",)),
        ("me, ben@example.org; ann@example.org", ("ann@example.org", "ben@example.org")),
    ],
)
async def test_a_mail_goes_to_each_address_once(world: World, ann: User, to: str, addresses: tuple[str, ...]) -> None:
    outbox = Outbox()
    world.wired[Mail] = outbox
    text = await world.text(ann, "email_send", to=to, subject=" Late \n today ", text="I come at 9.")
    assert text == f"Sent to {', '.join(addresses)}."
    assert list(outbox.got.values()) == [(addresses, "Late today", "I come at 9.")]


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "ben"},
        {"to": ""},
        {"to": "ben@example.org\nBcc: eve@evil.example"},
        {"to": "ben@example"},
        {"to": ",".join(f"a{n}@example.org" for n in range(11))},
        {"subject": " "},
        {"subject": "x" * 201},
        {"text": ""},
        {"text": "x" * 50_001},
    ],
)
async def test_what_is_no_mail_is_not_sent(world: World, ann: User, arguments: dict[str, str]) -> None:
    outbox = Outbox()
    world.wired[Mail] = outbox
    with pytest.raises(ToolFailed):
        await world.text(ann, "email_send", **{"to": "ben@example.org", "subject": "a", "text": "b", **arguments})
    assert outbox.got == {}


async def test_me_needs_an_address(world: World, ann: User) -> None:
    world.wired[Mail] = Outbox(own="")
    with pytest.raises(ToolFailed, match="no address of their own"):
        await world.text(ann, "email_send", to="me", subject="a", text="b")


async def test_a_repeated_step_sends_under_one_id(world: World, ann: User) -> None:
    outbox, phones, rooms = Outbox(), Phones(), Rooms()
    world.wired |= {Mail: outbox, Push: phones, Talk: rooms}
    for _ in range(2):
        ctx = world.ctx(ann, call_id="one")
        await world.run(ctx, "email_send", to="me", subject="a", text="b")
        await world.run(ctx, "web_push", text="b")
        await world.run(ctx, "nc_talk_send", to="family", text="b")
    assert [len(sent) for sent in (outbox.got, phones.got, rooms.got)] == [1, 1, 1]


async def test_a_server_that_refuses_is_said(world: World, ann: User) -> None:
    world.wired |= {Mail: DeadOutbox(), Talk: BusyRooms()}
    with pytest.raises(ToolFailed, match="535"):
        await world.text(ann, "email_send", to="me", subject="a", text="b")
    for name, arguments in (("nc_talk_send", {"to": "family", "text": "b"}), ("nc_talk_history", {})):
        with pytest.raises(ToolFailed, match="too many requests"):
            await world.text(ann, name, **arguments)


@pytest.mark.parametrize("name", ["Family", "family", "#family", "t1"])
async def test_a_room_is_known_by_its_whole_name_however_it_is_written(world: World, ann: User, name: str) -> None:
    rooms = Rooms()
    world.wired[Talk] = rooms
    assert await world.text(ann, "nc_talk_send", to=name, text=" dinner at 7 ") == f"Posted in {name!r}."
    assert list(rooms.got.values()) == [("t1", "dinner at 7")]


@pytest.mark.parametrize(
    ("to", "text", "says"),
    [
        ("team", "hi", "2 rooms fit 'team': 'Team north', 'Team south'"),
        ("cellar", "hi", "no room 'cellar'. Rooms: 'Family'"),
        ("fam", "hi", "One room holds 'fam': 'Family'. Say which, by its whole name"),
        ("", "hi", "no room ''"),
        ("me", "hi", "email_send reach the user"),
        ("family", " ", "1 to 32000"),
        ("family", "x" * 32_001, "1 to 32000"),
    ],
)
async def test_what_cannot_be_posted_is_said(world: World, ann: User, to: str, text: str, says: str) -> None:
    rooms = Rooms()
    world.wired[Talk] = rooms
    with pytest.raises(ToolFailed, match=says) as failed:
        await world.text(ann, "nc_talk_send", to=to, text=text)
    assert failed.value.is_tainted is ("'Family'" in says or "'Team" in says or not to), (
        "names of rooms are others' words"
    )
    assert rooms.got == {}


async def test_a_room_is_read_back_in_stretches(world: World, ann: User) -> None:
    world.wired[Talk] = Rooms()
    text = await world.text(ann, "nc_talk_history", room="family", count=2)
    assert text.splitlines() == [
        "Family:",
        "- 2026-11-20 09:00 Bo: post 29",
        "- 2026-11-20 09:00 Bo: post 30",
        "[earlier ones: before=29]",
    ]
    assert "post 28" in await world.text(ann, "nc_talk_history", room="family", count=2, before=29)
    assert "Nothing earlier" in await world.text(ann, "nc_talk_history", room="family", before=1)
    with pytest.raises(ValidationError):
        await world.text(ann, "nc_talk_history", room="family", count=500)


async def test_the_rooms_are_listed_with_what_is_unread(world: World, ann: User) -> None:
    world.wired[Talk] = Rooms()
    assert (await world.text(ann, "nc_talk_history")).splitlines()[:2] == ["- Family (2 unread)", "- Team north"]
    world.wired[Talk] = Rooms(known=())
    assert "no room" in await world.text(ann, "nc_talk_history")


def gate_of(world: World, desk: PlainDesk) -> Executor:
    book = PlainBook()
    book.now(permitted=frozenset(world.registry.tools))
    return Executor(registry=world.registry, call_log=book, approvals=desk, scope=world, ticks_s=lambda: 0.0)


POST = ToolCall(id="w1", name="nc_talk_send", arguments=json.dumps({"to": "family", "text": "dinner at 7"}))


async def test_the_room_that_was_allowed_is_posted_in_whatever_bears_its_name_by_then(world: World) -> None:
    rooms, desk = Rooms(), PlainDesk()
    world.wired[Talk] = rooms
    gate = gate_of(world, desk)
    decision = await gate.decide(TURN, 1, POST)
    assert [request.destination for request in desk.pleas.values()] == ["Family (room t1)"]
    rooms.known = (Room(token="t9", name="Family", unread=0), Room(token="t1", name="Garden", unread=0))
    again = await gate.decide(TURN, 1, POST)  # killed before the engine had kept the decision
    assert (again.verdict, [one.destination for one in desk.pleas.values()]) == ("ask", ["Family (room t1)"])
    made = await gate.perform(TURN, 1, POST, decision, "allowed")
    assert not made.result.is_error
    assert list(rooms.got.values()) == [("t1", "dinner at 7")]


async def test_a_grant_for_a_room_does_not_hold_for_another_of_its_name(world: World) -> None:
    rooms, desk = Rooms(), PlainDesk(grants={("nc_talk_send", "Family (room t1)")})
    world.wired[Talk] = rooms
    gate = gate_of(world, desk)
    assert (await gate.decide(TURN, 1, POST)).verdict == "run"
    rooms.known = (Room(token="t9", name="Family", unread=0),)
    assert (await gate.decide(TURN, 2, POST)).verdict == "ask"


async def test_nobody_is_asked_about_a_room_that_is_not_there(world: World) -> None:
    rooms, desk = Rooms(known=(Room(token="t2", name="Team", unread=0),)), PlainDesk()
    world.wired[Talk] = rooms
    decision = await gate_of(world, desk).decide(TURN, 1, POST)
    assert decision.result is not None
    assert all(room in decision.result.text for room in ("'family'", "Rooms: 'Team'"))
    assert decision.result.tainted, "names of rooms are others' words"
    assert desk.pleas == {}
