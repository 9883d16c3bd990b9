"""The offline model through its door: `connect` and `stream`."""

import json
from datetime import UTC, datetime
from time import thread_time
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.messages import Message, Text, ToolResult, ToolSchema, assistant, results, user
from cortex.base.model import OFFLINE
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.providers import ProviderContext, connect
from cortex.providers.offline_arguments import fill
from cortex.providers.offline_words import find_moment, in_words
from cortex.schedule.reading import Reader

FRIDAY = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
STRING: dict[str, Any] = {"type": "string"}


def schema(name: str, description: str, required: list[str], **properties: dict[str, Any]) -> ToolSchema:
    parameters = {"type": "object", "properties": dict(sorted(properties.items())), "required": required}
    return ToolSchema(name=name, description=description, parameters=parameters)


CREATE = schema(
    "task_create",
    "Add a task to one of the user's lists.",
    ["title"],
    title=STRING,
    due={"type": ["string", "null"], "format": "date"},
    list_name={"type": "string", "default": "inbox"},
    priority={"type": "integer", "default": 0},
)
LIST = schema(
    "task_list", "Show tasks.", [], list_name={"type": ["string", "null"]}, is_done={"type": ["boolean", "null"]}
)
DONE = schema("task_complete", "Mark a task as done.", ["task"], task=STRING)
SHELL = schema(
    "shell_exec", "Run a shell command.", ["command"], command=STRING, folder=STRING, timeout_s={"type": "integer"}
)
READ = schema("file_read", "Read a file.", ["path"], path=STRING, offset={"type": "integer"})
WRITE = schema("file_write", "Write a file.", ["path", "content"], path=STRING, content=STRING)
SEARCH = schema("web_search", "Search the web.", ["query"], query=STRING)
OPEN = schema("web_read", "Read a web page.", ["url"], url=STRING)
REMIND = schema(
    "reminders_add", "Set a reminder.", ["text", "when"], text=STRING, when={"type": "string", "description": "When"}
)
SWITCH = schema("lamp_set", "Set a lamp.", ["state"], state={"enum": ["off", "on"]}, level={"type": "number"})


@pytest.mark.parametrize(
    ("sentence", "titles"),
    [
        ("add milk and eggs to my shopping list", ["milk", "eggs"]),
        ("please put milk, twelve eggs, and bread on the shopping list", ["milk", "twelve eggs", "bread"]),
        ('add "salt and pepper" to my shopping list', ["salt and pepper"]),
        ("add wash and iron the shirts for the party to my shopping list", ["wash and iron the shirts for the party"]),
        ("add call Ann and Joe to my todo list", ["call Ann and Joe"]),
    ],
)
async def test_each_thing_put_on_a_list_is_a_call_of_its_own(sentence: str, titles: list[str]) -> None:
    _, end = await run(ask(user(sentence), tools=(CREATE,), task_create=0.9))
    calls = end.message.calls
    assert [json.loads(call.arguments)["title"] for call in calls] == titles


async def test_what_follows_the_things_of_a_list_is_done_after_them() -> None:
    sentence = "add milk and eggs to my shopping list, and then add rice to my shopping list"
    _, first = await run(ask(user(sentence), tools=(CREATE,), task_create=0.9))
    done = results(*(ToolResult(call_id=call.id, name=call.name, text="Added.") for call in first.message.calls))
    _, then = await run(ask(user(sentence), first.message, done, tools=(CREATE,), task_create=0.9))
    (call,) = then.message.calls
    assert json.loads(call.arguments)["title"] == "rice"


@pytest.mark.parametrize(
    ("sentence", "prompt"),
    [
        (
            "every weekday at half past seven: tell me what is on my shopping list",
            "tell me what is on my shopping list",
        ),
        ("tell me every weekday at 7:30 what is on my shopping list", "tell me what is on my shopping list"),
        ("Every weekday at half past seven, read me my shopping list", "read me my shopping list"),
        ("remind me every day at 9 to take the pills", "take the pills"),
    ],
)
def test_a_job_keeps_the_whole_sentence_that_it_is_to_do(sentence: str, prompt: str) -> None:
    job = schema("cron_add", "Schedule a prompt.", ["prompt", "when"], prompt=STRING, when=STRING)
    filled = fill(job, sentence, FRIDAY, Reader())
    assert filled
    assert filled["prompt"] == prompt


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ("Will remind: call mum (2026-11-21 (tomorrow) 09:00)", "Will remind: call mum (tomorrow at 09:00)"),
        ("due 2026-11-24 (Tuesday)", "due Tuesday"),
        ("due 2026-12-24", "due 24 December"),
        ("Will remind: call mum (2027-01-03 09:00)", "Will remind: call mum (3 January 2027 at 09:00)"),
        ("due 2026-11-19 (overdue by 1 day)", "due yesterday, overdue by 1 day"),
        ("a file's own 2026-11-19 10:00", "a file's own 2026-11-19 10:00"),
    ],
)
def test_days_are_said_as_people_say_them(shown: str, words: str) -> None:
    assert in_words(shown, FRIDAY.date()) == words


@pytest.mark.parametrize(
    ("tool", "sentence", "arguments"),
    [
        (CREATE, "add fish and chips to my shopping list", {"title": "fish and chips", "list_name": "shopping"}),
        (
            CREATE,
            "Could you please add milk to the shopping list for tomorrow?",
            {"title": "milk", "list_name": "shopping", "due": "2026-11-21"},
        ),
        (
            CREATE,
            "create a new task to call mum on friday with priority 2",
            {"title": "call mum", "due": "2026-11-27", "priority": 2},
        ),
        (CREATE, "add a task: buy 3 apples", {"title": "buy 3 apples"}),
        (CREATE, 'put "Fix the roof" on my house list', {"title": "Fix the roof", "list_name": "house"}),
        (LIST, "what's on my list", {}),
        (LIST, "what is on my shopping list?", {"list_name": "shopping"}),
        (LIST, "show done tasks", {"is_done": True}),
        (DONE, "mark milk as done", {"task": "milk"}),
        (DONE, "tick off milk on my shopping list", {"task": "milk"}),
        (SHELL, "run `df -h` in the shell", {"command": "df -h"}),
        (SHELL, "run `df -h /var/log` in the shell", {"command": "df -h /var/log"}),
        (SHELL, "execute ls -la", {"command": "ls -la"}),
        (READ, "show file notes.md", {"path": "notes.md"}),
        (READ, "show me notes.md from offset 20", {"path": "notes.md", "offset": 20}),
        (WRITE, "write `hello world` to a/b.txt", {"path": "a/b.txt", "content": "hello world"}),
        (SEARCH, "search the web for cheap flights, please", {"query": "cheap flights"}),
        (OPEN, "read https://example.org/page. Thanks", {"url": "https://example.org/page"}),
        (
            REMIND,
            "every weekday at half past seven sum up my tasks",
            {"text": "sum up my tasks", "when": "every weekday at half past seven"},
        ),
        (
            REMIND,
            "at 9 every Friday and Sunday, tell me a joke",
            {"text": "tell me a joke", "when": "at 9 every Friday and Sunday"},
        ),
        *(
            (REMIND, f"{when}{joint} say good morning", {"text": "say good morning", "when": when})
            for when in (
                "every weekday at half past seven",
                "every weekday, at half past seven",
                "every weekday at 7:30",
                "every weekday at 7.30",
                "every weekday 7:30",
                "every weekday at 7",
                "every day at seven thirty",
                "every day at 7:30 am",
                "every day at 6 o'clock",
                "every day at 18h",
                "every day at 7 and 19",
                "every day at 8, 12 and 18",
                "every weekday at ten past seven",
                "every weekday at twenty-five to eight",
                "every monday at a quarter past nine",
                "every weekday at half seven",  # said as it is: what it may mean is asked by who reads times
                "every weekday at eight in the morning",
                "every weekday at noon",
                "every hour from 9 to 17",
                "every 2 hours",
                "every first monday of the month at 9",
                "at half past seven every weekday",
                "at 7:30, every weekday",
                "weekdays at 7:30",
                "on mondays at 7:30",
                "daily at quarter to eight",
            )
            for joint in (":", ",", ";", " -", " \u2013", " \u2014", " that", "")
        ),
        (
            REMIND,
            "every weekday: say good morning at half past seven",
            {"text": "say good morning", "when": "every weekday at half past seven"},
        ),
        (
            REMIND,
            "schedule a job every weekday at half past seven: say good morning",
            {"text": "job: say good morning", "when": "every weekday at half past seven"},
        ),
        (REMIND, "every day at 8: list my tasks", {"text": "list my tasks", "when": "every day at 8"}),
        (REMIND, "every day at 8, remind me to stretch", {"text": "stretch", "when": "every day at 8"}),
        (
            REMIND,
            "every weekday at 7: 30 minutes of yoga",
            {"text": "30 minutes of yoga", "when": "every weekday at 7"},
        ),
        (REMIND, "remind me at 6 to water the plants", {"text": "water the plants", "when": "at 6"}),
        (SWITCH, "set the lamp on with level 40", {"state": "on", "level": 40.0}),
    ],
    ids=lambda value: value.replace(" ", "_") if isinstance(value, str) else "",
)
def test_arguments_come_from_the_sentence(tool: ToolSchema, sentence: str, arguments: dict[str, Any]) -> None:
    assert fill(tool, sentence, FRIDAY, Reader()) == arguments


def test_a_required_argument_that_is_not_there_makes_no_call() -> None:
    assert fill(OPEN, "read that page", FRIDAY, Reader()) is None


@pytest.mark.parametrize(
    ("sentence", "words", "moment"),
    [
        ("call mum tomorrow", "tomorrow", "2026-11-21T09:00"),
        ("finish it today", "today", "2026-11-20T09:00"),  # has begun, and is a day until its end
        ("call mum on friday with priority 2", "on friday", "2026-11-27T09:00"),
        ("call mum next tuesday at 3pm", "next tuesday at 3pm", "2026-11-24T15:00"),
        ("wake me at half past seven", "at half past seven", "2026-11-20T19:30"),
        ("pay it by 5 December", "5 December", "2026-12-05T09:00"),
        ("pay it on December 5th", "on December 5th", "2026-12-05T09:00"),
        ("skate on the first of January", "on the first of January", "2027-01-01T09:00"),
        ("party 24.12.2026 18:30", "24.12.2026 18:30", "2026-12-24T18:30"),
        ("party on 2026-12-24", "on 2026-12-24", "2026-12-24T09:00"),
        ("pay rent on the 1st", "on the 1st", "2026-12-01T09:00"),
        ("bread out in half an hour", "in half an hour", "2026-11-20T14:30"),
        ("set a timer for 20 minutes", "20 minutes", "2026-11-20T14:20"),
        ("call mum two weeks from now", "two weeks from now", "2026-12-04T14:00"),
        ("lunch at noon and a walk", "at noon", "2026-11-21T12:00"),
        ("add the report for the day after tomorrow", "the day after tomorrow", "2026-11-22T09:00"),
        ("what did I write yesterday", "yesterday", "2026-11-19T14:00"),
        ("entries since 3 days ago", "3 days ago", "2026-11-17T14:00"),
    ],
)
def test_a_moment_is_found_in_a_sentence(sentence: str, words: str, moment: str) -> None:
    found = find_moment(sentence, FRIDAY, Reader())
    assert found == (words, datetime.fromisoformat(moment).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    "sentence",
    [
        "buy 3 apples",
        "read chapter 5",
        "see May about the march",
        "update the sat nav",
        "put sun cream on the list",
        "use 3/4 of the flour",
        "walk 5 miles",
        "once in a while",
        "read 1984",
    ],
)
def test_what_may_mean_something_else_is_no_moment(sentence: str) -> None:
    assert find_moment(sentence, FRIDAY, Reader()) is None


async def run(request: Request) -> tuple[str, StreamEnd]:
    provider = connect(OFFLINE, surroundings=ProviderContext(chunk_delay_s=0, clock=lambda: FRIDAY, timings=Reader()))
    items = [item async for item in provider.stream(request)]
    last = items[-1]
    assert isinstance(last, StreamEnd)
    return "".join(item.text for item in items if isinstance(item, Delta)), last


def ask(*messages: Message, tools: tuple[ToolSchema, ...] = (CREATE, LIST), **hints: float) -> Request:
    return Request(system="You are Cortex.", messages=messages, tools=tools, hints=tuple(hints.items()))


async def test_it_calls_the_best_hinted_tool_that_was_sent() -> None:
    _, done = await run(ask(user("add milk to my shopping list"), task_create=0.8, task_list=0.5, shell_exec=0.99))
    call = done.message.calls[0]
    assert (call.name, json.loads(call.arguments)) == ("task_create", {"title": "milk", "list_name": "shopping"})
    assert done.finish == "calls"


@pytest.mark.parametrize(
    "request_",
    [
        ask(user("add milk to my list")),
        ask(user("add milk to my list"), task_create=0.1),
        ask(user("add milk to my list"), tools=(LIST,), task_create=0.9),
        Request(
            system="", messages=(user("add milk"),), tools=(CREATE,), tool_choice="none", hints=(("task_create", 1),)
        ),
    ],
    ids=["no hint", "under the threshold", "not sent", "tool choice none"],
)
async def test_it_calls_nothing_without_a_sent_hinted_allowed_tool(request_: Request) -> None:
    text, done = await run(request_)
    assert done.message.calls == ()
    assert "no AI" in text
    assert "/models" in text


async def test_where_a_call_is_required_it_calls_the_likeliest_tool_that_was_sent() -> None:
    asked = ask(user("add milk to my list"), task_create=0.1)
    _, done = await run(replace(asked, tool_choice="required"))
    assert done.message.calls[0].name == "task_create"


async def test_of_tools_hinted_at_alike_the_one_with_the_users_words_is_called() -> None:
    _, done = await run(ask(user("add milk to my shopping list"), tools=(LIST, CREATE), task_create=0.9, task_list=0.9))
    assert done.message.calls[0].name == "task_create"


async def test_it_words_the_result_and_stops() -> None:
    _, first = await run(ask(user("add milk"), task_create=0.9))
    answer = results(ToolResult(call_id=first.message.calls[0].id, name="task_create", text="Added milk to inbox."))
    text, done = await run(ask(user("add milk"), first.message, answer, task_create=0.9))
    assert text == "Added milk to inbox." == done.message.text
    assert done.finish == "stop"


@pytest.mark.parametrize("filler", [" ", "\n", "-", "`", "a@", "a/", ". ", "and ", "(id abcd, "])
async def test_a_long_message_of_anything_is_read_at_once(filler: str) -> None:
    """On the event loop: 30,000 blanks took 6 s."""
    begun_s = thread_time()
    await run(ask(user(f"read the file x{filler * (30_000 // len(filler))}y"), tools=(READ, CREATE), file_read=0.9))
    assert thread_time() - begun_s < 1


async def test_a_second_clause_is_done_in_a_second_round() -> None:
    words = user("add milk to my shopping list and then show my shopping list")
    hints: dict[str, Any] = {"task_create": 0.9, "task_list": 0.6}
    _, first = await run(ask(words, **hints))
    assert json.loads(first.message.calls[0].arguments) == {"title": "milk", "list_name": "shopping"}
    done = results(ToolResult(call_id=first.message.calls[0].id, name="task_create", text="Added."))
    _, second = await run(ask(words, first.message, done, **hints))
    assert second.message.calls[0].name == "task_list"


async def test_an_error_is_told_and_not_tried_again() -> None:
    call = (await run(ask(user("add milk"), task_create=0.9)))[1].message
    failed = results(ToolResult(call_id=call.calls[0].id, name="task_create", text="The disk is full.", is_error=True))
    text, _ = await run(ask(user("add milk"), call, failed, task_create=0.9))
    assert "did not work" in text
    assert "The disk is full." in text


async def test_notes_of_cortex_after_the_words_are_not_taken_for_words() -> None:
    message = Message(speaker="user", parts=(Text(text="add milk for tomorrow"), Text(text="It is 2026-12-31 23:00.")))
    _, done = await run(ask(message, task_create=0.9))
    assert json.loads(done.message.calls[0].arguments) == {"title": "milk", "due": "2027-01-01"}


async def test_a_note_behind_the_results_is_not_the_person() -> None:
    call = (await run(ask(user("add milk"), task_create=0.9)))[1].message
    done = results(ToolResult(call_id=call.calls[0].id, name="task_create", text="Added milk."))
    text, _ = await run(ask(user("add milk"), call, done, user("(This is the last round.)"), task_create=0.9))
    assert text == "Added milk."


async def test_usage_counts_the_schemas() -> None:
    _, bare = await run(ask(user("hello"), tools=()))
    _, armed = await run(ask(user("hello")))
    assert armed.usage.input_tokens > bare.usage.input_tokens + 50
    assert bare.usage.output_tokens > 10


async def test_asked_for_a_summary_it_takes_sentences() -> None:
    request = Request(
        system="Write a summary of the conversation.",
        purpose="summary",
        messages=(user("User: My cat is Tom. He is old.\nAssistant: Nice to know! I will remember."),),
    )
    text, _ = await run(request)
    assert text == "User: My cat is Tom.\nAssistant: Nice to know!"


async def test_history_does_not_count_as_done_work() -> None:
    earlier = (
        user("add bread"),
        assistant("", (await run(ask(user("add bread"), task_create=1.0)))[1].message.calls[0]),
    )
    done = results(ToolResult(call_id=earlier[1].calls[0].id, name="task_create", text="Added bread."))
    _, finished = await run(ask(*earlier, done, assistant("Added bread."), user("add milk"), task_create=0.9))
    assert json.loads(finished.message.calls[0].arguments) == {"title": "milk"}
