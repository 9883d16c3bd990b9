"""A round whose step is made again, because the process was killed before the step's end was noted."""

from msgspec.structs import replace

from cortex.base.messages import ToolSchema, assistant, user
from cortex.base.turn import Need, RoundPlan
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.living_house import LivingHouse
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import Say, ScriptedServer, Use, rule

MILK = rule("milk", Say("I put it down.", (Use("task_create", {"title": "Milk"}),)), "Done.")


async def test_an_answer_that_was_kept_is_neither_asked_for_nor_paid_again(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [MILK]  # every answer makes its call under a new id, as real models do
    await house.connect(scripted)
    runs, person = house.cortex.turn_runs, house.admin.id
    conversation = await house.conversation()
    turns = house.cortex.runtime.db.repository(TurnsRepository, person)
    row = await turns.create(NewTurn("turn:1", conversation, "add milk", **PLAIN_TURN))
    turn = await runs.turn_start.start_turn(person, row.id)
    assert turn is not None
    plan = await runs.ports.planner.plan(turn, Need(round=1))
    added = (user(turn.text),)

    first = await runs.ports.model_caller.answer(turn, plan, (), added)
    again = await runs.ports.model_caller.answer(turn, plan, (), added)

    assert first.message is not None
    assert again.message == first.message
    stored = await house.cortex.runtime.db.repository(MessagesRepository, person).of_turn(turn.id)
    assert [one.message for one in stored] == [*added, first.message]
    assert len(scripted.log) == 1
    kinds = [event.kind for event in await house.events(conversation)]
    assert kinds.count("usage") == kinds.count("part.end") == 1


async def test_a_grown_tool_block_pushes_the_oldest_exchange_out_of_the_request(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.connect(scripted)
    runs, person = house.cortex.turn_runs, house.admin.id
    conversation = await house.conversation()
    past = (user("boiler " * 300), assistant("Noted."), user("cellar " * 300), assistant("Noted too."))
    seen = []
    for number, tools in enumerate((1, 12)):
        row = await house.cortex.runtime.db.repository(TurnsRepository, person).create(
            NewTurn(f"turn:{number}", conversation, "hello", **PLAIN_TURN)
        )
        turn = await runs.turn_start.start_turn(person, row.id)
        assert turn is not None
        small = replace(turn, window_tokens=1_500)
        schemas = tuple(
            ToolSchema(name=f"tool_{at}", description="It does what it does. " * 8, parameters={"type": "object"})
            for at in range(tools)
        )
        plan = RoundPlan(round=1, system="You are Cortex.", tools=schemas)
        await runs.ports.model_caller.answer(small, plan, past, (user("hello"),))
        seen.append(
            [said["content"].split()[0] for said in scripted.log[-1].body["messages"] if said["role"] == "user"]
        )
    assert seen == [["boiler", "cellar", "hello"], ["cellar", "hello"]]
