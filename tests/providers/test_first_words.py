"""What new people type first, through the real plan of their role, to the offline model: what it does and says."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.messages import user
from cortex.base.model import OFFLINE
from cortex.ports.loop import Request, StreamEnd
from cortex.providers import ProviderContext, connect
from cortex.schedule.reading import Reader
from cortex.selection.pipeline import plan
from tests.bench.ground import BenchGround, ground
from tests.living_house import living_house

HELLO, THANKS, BYE, SELF = "Hello!", "You're welcome", "Goodbye", "no language model"
HELP, CANT, NEXT = "plain requests like these", "I can't help with that", "Tell me what to do next"
SAID = {
    HELLO: ("hi", "Hello!", "hey there", "good morning", "Good evening, Cortex"),
    THANKS: ("thanks", "thank you so much!", "Thanks, that's all"),
    BYE: ("bye", "good night"),
    SELF: ("who are you?", "are you ChatGPT?", "what's your name?", "which model are you?", "are you there?"),
    HELP: ("what can you do?", "What can you do for me?", "help", "test", "?", "how does this work?"),
    NEXT: ("ok", "lol", "great", "never mind", "Forget it."),
    "Ready to work": ("how are you?", "How's it going?"),
    "It is 14:00 on Friday, 20 November 2026": ("what time is it?", "what day is today?"),
    CANT: (
        "think about it",
        "tell me a joke",
        "write me a poem about autumn",
        "summarize this text: The cat sat on the mat and slept.",
        "what's the capital of France?",
        "what is 17 * 23?",
        "translate good morning into Spanish",
        "explain quantum computing in simple terms",
        "help me write an email to my landlord",
        "how do I learn Python?",
        "how do I add a task?",
        "delete everything",
        "I'm bored",
        "what do you think about AI?",
        "I need to buy eggs and bread",
        "should I buy milk?",
        "did you add the milk?",
        "don't add milk to my list",
        "plan my day",
        "can you remember things?",
        "remind me",
        "write a python function that reverses a string",
        "book a table for two tonight",
        "cancel everything",
        "remember this about me",
    ),
}
DONE = {
    "make a note: the wifi password is on the fridge": ("notes_append", "the wifi password is on the fridge"),
    "note that I'm allergic to peanuts": ("notes_append", "I'm allergic to peanuts"),
    "take a note: call the plumber about the boiler": ("notes_append", "call the plumber about the boiler"),
    "write down that the car is in row C": ("scratch_append", "car is in row C"),
    "remember that my birthday is on 3 May": ("memory_add", "birthday is on 3 May"),
    "add milk to my shopping list": ("task_create", "milk", "shopping"),
    "put bread on the shopping list please": ("task_create", "bread", "shopping"),
    "todo: call the bank": ("task_create", "call the bank"),
    "create a task: finish the report by friday": ("task_create", "finish the report", "2026-11-27"),
    "can you set a reminder for tomorrow at 9 to buy flowers?": ("reminders_add", "buy flowers", "tomorrow at 9"),
    "remind me to call mum tomorrow at 10": ("reminders_add", "call mum", "tomorrow at 10"),
    "remind me in 20 minutes to check the oven": ("reminders_add", "check the oven", "in 20 minutes"),
    "set a timer for 10 minutes": ("reminders_add", "timer", "10 minutes"),
    "every weekday at 8 tell me my tasks": ("cron_add", "tell me my tasks", "every weekday at 8"),
    "mark milk as done": ("task_complete", "milk"),
    "loop over my tasks": ("task_list",),
    "what are my tasks?": ("task_list",),
    "tell me my tasks": ("task_list",),
    "what's on my shopping list?": ("task_list", "shopping"),
    "show my reminders": ("reminders_list",),
    "do I have any reminders?": ("reminders_list",),
    "show my notes": ("notes_read",),
    "add to my notes: the oven is slow": ("notes_append", "oven is slow"),
    "what do you know about me?": ("memory_search",),
    "list my files": ("file_list",),
    "use task_list for me": ("task_list",),
}


@pytest.fixture(scope="module")
def shipped() -> BenchGround:
    return ground("orchestrator", "none")


async def answered(shipped: BenchGround, text: str) -> StreamEnd:
    """The first answer to this first message of a new conversation."""
    made = plan(replace(shipped.asked(text, "cortex"), profile=OFFLINE.profile, is_admin=False))
    request = Request(system="", messages=(user(text),), tools=made.schemas, hints=made.hints)
    friday = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
    around = ProviderContext(count=len, clock=lambda: friday, chunk_delay_s=0, timings=Reader())
    ends = [item async for item in connect(OFFLINE, None, around).stream(request) if isinstance(item, StreamEnd)]
    return ends[0]


@pytest.mark.parametrize(("text", "answer"), [(text, answer) for answer, texts in SAID.items() for text in texts])
async def test_what_asks_for_nothing_it_can_do_gets_an_honest_sentence(
    shipped: BenchGround, text: str, answer: str
) -> None:
    done = await answered(shipped, text)
    assert done.message.calls == ()
    assert answer in done.message.text


@pytest.mark.parametrize(("text", "wanted"), DONE.items())
async def test_a_plain_request_is_done(shipped: BenchGround, text: str, wanted: tuple[str, ...]) -> None:
    (call,) = (await answered(shipped, text)).message.calls
    assert call.name == wanted[0]
    assert {value for value in json.loads(call.arguments).values() if value} == set(wanted[1:])


async def test_an_answer_names_no_id_and_no_tool(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        here = await house.conversation(user=house.member)
        for text in ("what are my tasks?", "add milk to my shopping list", "what's on my shopping list?"):
            await house.say(here, text, user=house.member)
        parts = await house.events(here, "part.end", user=house.member)
    assert [part.payload["text"] for part in parts] == [
        "There is no open task.",
        "Added: milk (shopping)",
        "Here is what I found:\n\n- [ ] milk",
    ]
