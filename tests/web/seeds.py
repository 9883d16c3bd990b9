"""Conversations to look at: what the pictures of the page show, and a long one."""

from typing import Any

from tests.web.fake_house import BRIAN, Book, FakeHouse
from tests.web.receipts import receipt


def seeded(house: FakeHouse) -> FakeHouse:
    """The house with a few conversations of Brian's."""
    for title in ("Compare heat pump quotes", "Letter to the landlord about the boiler", "Morning brief"):
        house.new_book(BRIAN, "orchestrator", "auto", title, source="job" if "brief" in title else "chat")
    book = house.new_book(BRIAN, "orchestrator", "auto", "Kitchen lights and the week ahead")
    _turn(house, book, "Good morning. Anything I should know before the stand-up?", MORNING, ())
    calls = (
        ("ha_call_service", "light.turn_off · light.kitchen", '{"domain": "light", "entity_id": "light.kitchen"}', 212),
        ("reminders_add", "Descale the kettle · Sat 10:00", '{"text": "Descale the kettle"}', 9),
    )
    _turn(house, book, "Turn off the kitchen lights and remind me on Saturday at 10 to descale the kettle", DONE, calls)
    return house


def long_book(house: FakeHouse, messages: int) -> Book:
    """A conversation with that many messages."""
    book = house.new_book(BRIAN, "orchestrator", "auto", f"{messages} messages")
    for number in range(messages // 2):
        calls = (("cron_list", "last 24 h", "{}", 12),) if number % 3 == 0 else ()
        _turn(house, book, f"Which jobs ran last night? ({number + 1})", MORNING * (1 + number % 4), calls)
    return book


def _turn(house: FakeHouse, book: Book, text: str, answer: str, calls: tuple[tuple[str, str, str, int], ...]) -> None:
    house.count += 1
    turn = f"turn:{house.count:04d}"
    book.turns.append(turn)

    def tell(kind: Any, /, **payload: Any) -> None:
        house.append(book, kind, {"turn": turn, **payload}, turn)

    told = receipt(text if calls else "")
    tell("message", text=text, mode="auto", is_steer=False, ordinal=len(book.turns))
    tell("turn.start", role="orchestrator", model="local/qwen", max_rounds=5, max_rounds_from="CORTEX_MAX_ROUNDS")
    tell("selection", round=1, receipt=told)
    for number, (name, brief, arguments, ms) in enumerate(calls):
        call = f"{house.count:04d}.c{number}"
        tell("tool.call", round=1, call=call, name=name, arguments=arguments, brief=brief, risk="low")
        result = {"state": "ok", "text": '{"changed": true}', "ms": ms, "undo": None, "spill": "", "is_tainted": False}
        tell("tool.result", call=call, name=name, **result)
    part = f"{house.count:04d}-1-0"
    tell("part.start", round=1, part=part, kind="text", attempt=1)
    tell("part.end", round=1, part=part, kind="text", text=answer, attempt=1)
    tell("usage", round=1, model="local/qwen", input=11_900, output=500, cached=0, written=0, cost_usd=None)
    tokens = {"tools_sent": len(told["sent"]), "tokens_sent": told["tokens"], "tokens_saved": told["saved"]}
    tell("turn.end", state="done", rounds=1 + bool(calls), seconds=2.1, can_continue=False, **tokens)


MORNING = (
    "Morning, Brian. Nothing failed overnight and your first meeting is at 09:30. Two things were left open yesterday: "
    "the MariaDB upgrade window, and whether the old journal importer can go."
)
DONE = "Done: the kitchen lights are off, and I will remind you on **Saturday at 10:00** to descale the kettle."
