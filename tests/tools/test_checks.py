"""Ask only what can run: a call that would fail anyway goes back to the model, and nobody is asked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from cortex import tools
from cortex.agent.execute import Executor
from cortex.base.errors import ToolFailed
from cortex.base.messages import ToolCall
from cortex.base.turn import Decision
from cortex.base.user import User
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.open_names import Access, OpenNames
from cortex.integrations.web import Web
from cortex.ports.aether import AetherDatabase
from cortex.ports.agents import Agents, AllowedFolders, CodingAgent
from cortex.ports.home_assistant import HomeAssistant, ServiceChecks
from cortex.ports.outgoing import Mail, Push, Room, Talk
from cortex.ports.schedule import Jobs, Reminders, Timings
from cortex.ports.system import Restarting, Upkeep
from cortex.toolkit.spec import Tool
from tests.plain_book import PlainBook, PlainDesk
from tests.plain_clients import Folders, Letters, MemoryCoder, Phones
from tests.plain_world import TURN
from tests.tool_world import World
from tests.tools.test_agents import MemoryAgents
from tests.tools.test_ha import SmallHouse, entity
from tests.tools.timed import MemoryJobs, MemoryReminders, PlainTimings

SHIPPED = tools.load()
NOTHING_TO_CHECK = {
    "nc_talk_history": "to know the room is to read what the question is about",
    "nc_talk_send": "its aim finds the room, and refuses what names none, ahead of the question",
    **dict.fromkeys(
        (
            "calendar_add",
            "calendar_answer",
            "calendar_change",
            "calendar_remove",
            "mail_draft",
            "mail_flag",
            "mail_move",
            "mail_save",
        ),
        "its aim makes the change ready, and refuses what cannot be, ahead of the question",
    ),
}
LONG = "x" * 120_000


class KeptFolders(Folders):
    async def must_be_possible(self, folder: str) -> None:
        if folder != "/srv/code":
            raise ToolFailed(f"There is no folder {folder!r} here.")


class NoSecondDoor:
    """What must stay closed until the person has said yes."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was used ahead of the question")


class UnreadShop(NoSecondDoor):
    """A real database of which nothing is opened."""

    async def check(self, *, sql: str = "", table: str = "", database: str = "", role: str = "") -> None:
        if database not in ("", "shop"):
            raise ToolFailed(f"There is no database {database!r}. Known: shop.")
        names = OpenNames(default_schema="shop", schemas=("shop",))
        nowhere = ReadOnlyDatabase(Access(host="127.0.0.1", port=1, user="reader", password="", names=names))
        await nowhere.check(sql=sql, table=table)


class OneProcess(NoSecondDoor):
    async def must_be_possible(self) -> None:
        """It can be restarted."""


class OldUpkeep(NoSecondDoor):
    async def earlier(self) -> str:
        return ""

    async def must_be_possible(self) -> None:
        raise ToolFailed("It was installed in another way.")


@dataclass
class UnsentLetters(Letters):
    own: str = ""

    async def own_address(self) -> str:
        return self.own

    async def rooms(self) -> Sequence[Room]:
        return (Room(token="t1", name="Family", unread=0),)


@dataclass
class Gate:
    """The gate over every tool that ships, in a turn that has read text from outside: all that can ask, asks."""

    world: World
    book: PlainBook = field(default_factory=PlainBook)
    desk: PlainDesk = field(default_factory=PlainDesk)

    def __post_init__(self) -> None:
        self.executor = Executor(
            registry=SHIPPED, call_log=self.book, approvals=self.desk, scope=self.world, ticks_s=lambda: 0.0
        )

    async def decide(self, name: str, arguments: dict[str, Any]) -> Decision:
        return await self.executor.decide(TURN, 1, ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


@pytest.fixture
def gate(world: World, ann: User) -> Gate:
    lamp = entity("light.sink", "Sink light", "Kitchen", "on")
    letters = UnsentLetters()
    world.wired |= {
        Timings: PlainTimings(),
        Mail: letters,
        Talk: letters,
        Push: Phones(),
        CodingAgent: MemoryCoder(),
        AllowedFolders: KeptFolders(),
        **dict.fromkeys((HomeAssistant, ServiceChecks), SmallHouse(rows={lamp.id: lamp})),
        Restarting: OneProcess(),
        Upkeep: OldUpkeep(),
        Web: NoSecondDoor(),
        AetherDatabase: UnreadShop(),
    }
    agents = MemoryAgents()
    world.bound |= {
        Agents: lambda _: agents,
        Jobs: lambda _: MemoryJobs(),
        Reminders: lambda _: MemoryReminders(),
    }
    made = Gate(world)
    asks = frozenset({"reminders_add", "web_push"})  # these ask where an admin has them ask
    made.book.now(user=ann, permitted=frozenset(SHIPPED.tools), is_tainted=True, taint_source="a page", asks_first=asks)
    return made


def can_ask(tool: Tool) -> bool:
    """Whether the tool asks in some turn, as it ships."""
    return not tool.free and (tool.confirm or tool.risk != "low" or tool.risk_of is not None)


def test_every_tool_that_can_ask_has_a_check_or_a_reason_why_nothing_can_be_checked() -> None:
    asking = {tool.name: tool for tool in SHIPPED.tools.values() if can_ask(tool)}
    unchecked = {name for name, tool in asking.items() if tool.check is None}
    assert unchecked == set(NOTHING_TO_CHECK)
    assert [name for name in NOTHING_TO_CHECK if asking[name].aim is None] == ["nc_talk_history"]


MAIL = {"to": "ben@example.org", "subject": "Hello", "text": "Come over."}


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("email_send", {**MAIL, "to": "nobody"}, "'nobody' is not an e-mail address"),
        ("email_send", {**MAIL, "to": "me"}, "no address of their own"),
        ("email_send", {**MAIL, "subject": " "}, "A subject has 1 to 200"),
        ("email_send", {**MAIL, "text": ""}, "A mail has 1 to"),
        ("nc_talk_send", {"to": "Office", "text": "Hi"}, "There is no room 'Office'"),
        ("web_push", {"text": "  "}, "A message has 1 to"),
        ("http_post", {"url": "example.org/hook"}, "is not a web address"),
        ("http_post", {"url": "http://192.168.1.1/hook"}, "is inside a private network"),
        ("http_post", {"url": "https://nas.local/hook"}, "is inside a private network"),
        ("http_post", {"url": "https://example.org/", "body": "{"}, "The body is not JSON"),
        ("http_post", {"url": "https://example.org/", "body": LONG, "kind": "text"}, "at most 100000"),
        ("http_post", {"url": "https://example.org/", "headers": {"Host": "x"}}, "'Host' cannot be set"),
        ("web_read", {"url": "ftp://example.org/"}, "is not a web address"),
        ("http_fetch", {"url": "http://[::1]/"}, "is inside a private network"),
        ("web_search", {"query": " "}, "A query has 1 to"),
        ("cron_add", {"prompt": "Look.", "when": "whenever"}, "'whenever' is no time"),
        ("cron_add", {"prompt": "Look.", "when": "yesterday at 9"}, "never happens"),
        ("cron_add", {"prompt": "Look.", "when": "every 30 seconds"}, "at most once per minute"),
        ("cron_add", {"prompt": " ", "when": "every day at 9"}, "A prompt has 1 to"),
        ("reminders_add", {"text": "Call mum", "when": "some day"}, "'some day' is no time"),
        ("reminders_add", {"text": "", "when": "tomorrow at 9"}, "A reminder has 1 to"),
        ("shell_exec", {"command": "  "}, "A command has 1 to"),
        ("shell_exec", {"command": "ls", "folder": "absent"}, "There is no 'absent'"),
        ("shell_exec", {"command": "ls", "folder": "../.."}, "not inside your folders"),
        ("file_write", {"path": "../x.md", "text": "x"}, "not inside your folders"),
        ("file_write", {"path": "a.md", "text": LONG * 9}, "more than 1 MB"),
        ("file_write", {"path": "a.md", "text": "x", "replace": "y"}, "There is no 'a.md'"),
        ("file_write", {"path": "notes.md", "text": "x", "replace": "y"}, "0 times in 'notes.md'"),
        ("ha_call_service", {"service": "lights", "target": "sink"}, "is not a service"),
        ("ha_call_service", {"service": "light.turn_on"}, "Say in target which devices"),
        ("ha_call_service", {"service": "light.turn_on", "target": "unicorn"}, "No device is certainly"),
        ("ha_call_service", {"service": "shell_command.wipe"}, "are not called from here"),
        ("ae_db_query", {"sql": " ; "}, "A statement has 1 to"),
        ("ae_db_query", {"sql": "delete from members"}, "Only one reading statement is run here"),
        ("ae_db_query", {"sql": "select sleep(9)"}, "The function SLEEP is not one of those"),
        ("ae_db_query", {"sql": "select * from secret.salaries"}, "read from what is open (shop)"),
        ("ae_db_query", {"sql": "select 1", "database": "pub"}, "There is no database 'pub'. Known: shop."),
        ("ae_db_describe", {"table": "secret.salaries"}, "secret.salaries is not open to you"),
        ("ae_db_describe", {"database": "pub"}, "There is no database 'pub'"),
        ("ae_db_show_view", {"view": "a.b.c"}, "write table or schema.table"),
        ("ae_db_show_view", {"database": "pub"}, "There is no database 'pub'"),
        ("spawn_agent", {"task": "Look.", "role": "wizard"}, "There is no role 'wizard'"),
        ("spawn_agent", {"task": " "}, "A task has 1 to"),
        ("agent_cancel", {"agent": "nothing"}, "No agent fits"),
        ("aider_run", {"repository": "unknown", "message": "Fix it."}, "There is no repository 'unknown'"),
        ("aider_run", {"repository": "cortex", "message": ""}, "A message has 1 to"),
        ("aider_run", {"repository": "cortex", "message": "Fix it.", "files": ["/etc/passwd"]}, "not a path inside"),
        ("claude_allow_dir", {"folder": "code"}, "cannot be allowed"),
        ("claude_allow_dir", {"folder": "/srv/absent"}, "There is no folder '/srv/absent'"),
        ("cortex_update", {"action": "roll_back"}, "no earlier version"),
    ],
)
async def test_what_cannot_run_is_not_asked(
    gate: Gate, world: World, ann: User, name: str, arguments: dict[str, Any], says: str
) -> None:
    await world.text(ann, "file_write", path="notes.md", text="milk")
    decision = await gate.decide(name, arguments)
    assert decision.verdict == "refuse"
    assert decision.result is not None
    assert decision.result.is_error
    assert says in decision.result.text
    assert not gate.desk.pleas
    assert not gate.book.intents
    (ending,) = gate.book.endings.values()
    is_unknown = name == "nc_talk_send" or arguments.get("to") == "nobody"  # what the aim finds nowhere
    assert ending.state == ("err" if is_unknown else "refused")
    assert not set(world.targets.kept) & set(gate.book.records)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("email_send", MAIL),
        ("nc_talk_send", {"to": "Family", "text": "Hi"}),
        ("web_push", {"text": "Tea is ready"}),
        ("http_post", {"url": "https://example.org/hook", "body": "{}"}),
        ("web_read", {"url": "https://example.org/"}),
        ("http_fetch", {"url": "https://example.org/"}),
        ("web_search", {"query": "weather"}),
        ("cron_add", {"prompt": "Look.", "when": "every day at 9"}),
        ("reminders_add", {"text": "Call mum", "when": "tomorrow at 9"}),
        ("shell_exec", {"command": "ls"}),
        ("file_write", {"path": "new/a.md", "text": "x"}),
        ("file_write", {"path": "notes.md", "text": "oats", "replace": "milk"}),
        ("ha_call_service", {"service": "light.turn_on", "target": "kitchen lights"}),
        ("ae_db_query", {"sql": "SELECT 1"}),
        ("ae_db_query", {"sql": "SELECT * FROM nowhere", "database": "shop"}),
        ("ae_db_describe", {}),
        ("ae_db_describe", {"table": "members"}),
        ("ae_db_show_view", {"view": "shop.active_members"}),
        ("spawn_agent", {"task": "Look.", "role": "coder"}),
        ("aider_run", {"repository": "cortex", "message": "Fix it."}),
        ("claude_allow_dir", {"folder": "/srv/code"}),
        ("cortex_update", {"action": "preview"}),
        ("cortex_restart", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_can_run_is_asked_and_nothing_happened_by_then(
    gate: Gate, world: World, ann: User, name: str, arguments: dict[str, Any]
) -> None:
    await world.text(ann, "file_write", path="notes.md", text="milk")
    assert (await gate.decide(name, arguments)).verdict == "ask"
    assert len(gate.desk.pleas) == 1
    assert not gate.book.endings
    aimed = set(world.targets.kept) & set(gate.book.records)
    assert bool(aimed) == (name == "nc_talk_send")
    assert "new" not in await world.text(ann, "file_list")
    assert "milk" in await world.text(ann, "file_read", path="notes.md")


@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("file_write", {"path": "notes.md", "text": "x", "replace": "y"}, "refuse"),
        ("file_write", {"path": "notes.md", "text": "x", "replace": "milk"}, "ask"),
        ("file_write", {"path": "absent.md", "text": "x", "replace": "y"}, "refuse"),
        ("file_write", {"path": "folder", "text": "x"}, "refuse"),
        ("ha_call_service", {"service": "light.turn_on", "target": "sink"}, "refuse"),
        ("ha_call_service", {"service": "light.dance", "target": "kitchen lights"}, "refuse"),
        ("email_send", {**MAIL, "to": "me"}, "refuse"),
        ("aider_run", {"repository": "unknown", "message": "Fix it."}, "refuse"),
        ("claude_allow_dir", {"folder": "/srv/code"}, "ask"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_check_that_looks_at_private_data_marks_the_turn_whatever_it_says(
    gate: Gate, world: World, ann: User, name: str, arguments: dict[str, Any], verdict: str
) -> None:
    await world.text(ann, "file_write", path="notes.md", text="milk")
    await world.text(ann, "file_write", path="folder/a.md", text="milk")
    assert (await gate.decide(name, arguments)).verdict == verdict
    assert gate.book.has_noted_private


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("file_write", {"path": "new.md", "text": "x"}),
        ("file_write", {"path": "../x.md", "text": "x", "replace": "y"}),
        ("ha_call_service", {"service": "light.turn_on", "target": "kitchen lights"}),
        ("http_post", {"url": "nowhere"}),
        ("cron_add", {"prompt": "Look.", "when": "whenever"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_check_of_the_words_alone_marks_nothing(gate: Gate, name: str, arguments: dict[str, Any]) -> None:
    await gate.decide(name, arguments)
    assert not gate.book.has_noted_private


async def test_a_check_that_quotes_words_from_outside_marks_the_turn(gate: Gate) -> None:
    decision = await gate.decide("ha_call_service", {"service": "light.turn_on", "target": "sink"})
    assert decision.result is not None
    assert "Near: Sink light" in decision.result.text
    assert decision.result.tainted
    plain = await gate.decide("http_post", {"url": "nowhere"})
    assert plain.result is not None
    assert not plain.result.tainted, "nothing was read there"
