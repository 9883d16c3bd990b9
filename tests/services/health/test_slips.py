"""A slip in a file of a home: the turn says what is wrong and where, and goes on when the file is mended."""

from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.ports.agents import Agents
from tests.living_house import LivingHouse, living_house
from tests.services.jobs.test_runs import NOON, Shift
from tests.still_clock import StillClock

ROLE, MODELS = "roles/orchestrator.md", "model_registry.json"
SLIPS = {
    "an open front matter": (ROLE, b"---\nmode: auto\n", "roles/orchestrator.md: the front matter that begins"),
    "an unknown key": (ROLE, b"---\ntoolz: [web]\n---\n", "roles/orchestrator.md: unknown key 'toolz'"),
    "a wrong type": (ROLE, b"---\nmax_rounds: many\n---\n", "roles/orchestrator.md: 'max_rounds' must be"),
    "an unknown tool mode": (ROLE, b"---\nmode: odd\n---\n", "roles/orchestrator.md: 'mode' must be one of"),
    "a role that is no text": (ROLE, b"\xff\xfe", "roles/orchestrator.md cannot be read: "),
    "no JSON": (MODELS, b"{models", "model_registry.json can't be read: "),
    "a wrong type of a model": (MODELS, b'{"models": [{"name": 1}]}', "model_registry.json can't be read: models.0"),
    "models that are no text": (MODELS, b"\xff\xfe", "model_registry.json cannot be read: "),
    "a persona that is no text": ("persona.md", b"\xff\xfe", "persona.md cannot be read: "),
}


def place_of(house: LivingHouse, path: str) -> Path:
    place = house.cortex.runtime.settings.home / house.admin.id / path
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


@pytest.mark.parametrize(("path", "content", "told"), SLIPS.values(), ids=SLIPS.keys())
async def test_a_turn_says_what_is_wrong_and_is_answered_when_it_is_mended(
    house: LivingHouse, path: str, content: bytes, told: str
) -> None:
    cid = await house.conversation()
    place_of(house, path).write_bytes(content)
    failed = await house.say(cid, "hello")
    behind = await house.say(cid, "are you there?")  # the line goes on, and its head is not lost
    ends = {event.payload["turn"]: event.payload["state"] for event in await house.events(cid, "turn.end")}
    assert ends == {failed: "failed", behind: "failed"}
    errors = [event.payload["text"] for event in await house.events(cid, "error")]
    assert [text[: len(told)] for text in errors] == [told, told]
    assert await house.cortex.runtime.runner.status(failed) == "done"
    place_of(house, path).unlink()
    again = await house.cortex.chat.again(house.admin, behind)
    await house.until(cid, "turn.end", turn=again, state="done")


async def test_a_folder_in_the_place_of_a_file_is_told_and_not_passed_over(house: LivingHouse) -> None:
    cid = await house.conversation()
    place_of(house, ROLE).mkdir()
    turn = await house.say(cid, "hello")
    error = await house.until(cid, "error", turn=turn)
    assert ("roles/orchestrator.md" in error.payload["text"], "a folder" in error.payload["text"]) == (True, True)


async def test_what_failed_stays_failed_over_a_restart(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        cid = await house.conversation()
        place_of(house, ROLE).write_text("---\nmode: odd\n---\n")
        turn = await house.say(cid, "hello")
    async with living_house(tmp_path) as house:
        assert [event.payload["state"] for event in await house.events(cid, "turn.end")] == ["failed"]
        assert (await house.until(cid, "message", turn=turn)).payload["text"] == "hello"


async def test_the_doctor_names_each_file_with_a_slip_and_where_it_lies(house: LivingHouse) -> None:
    place_of(house, ROLE).write_text("---\nmode: odd\n---\n")
    place_of(house, MODELS).write_bytes(b"\xff\xfe")
    found = [one for one in await house.cortex.doctor.examine() if one.name == "files of ada"]
    assert [(one.state, one.text.split(".")[0]) for one in found] == [
        ("bad", "model_registry"),
        ("bad", "roles/orchestrator"),
    ]
    assert all(house.admin.id in one.mend for one in found)


async def test_an_agent_in_a_role_with_a_slip_is_refused_with_the_sentence(house: LivingHouse) -> None:
    cid = await house.conversation()
    parent = await house.say(cid, "hello")
    place_of(house, "roles/research.md").write_text("---\ntoolz: [web]\n---\n")
    agents = house.cortex.scope.provide(Agents, house.admin.id)
    with pytest.raises(UserError, match=r"roles/research.md: unknown key 'toolz'"):
        await agents.start("run:1", parent, "look it up", "research", False)


async def test_what_would_be_sent_is_refused_with_the_sentence(house: LivingHouse) -> None:
    cid = await house.conversation()
    place_of(house, ROLE).write_text("---\nmode: odd\n---\n")
    with pytest.raises(UserError, match=r"roles/orchestrator.md: 'mode' must be one of"):
        await house.cortex.planning.preview(house.admin, cid, "hello", "auto")


@pytest.mark.parametrize("tools", [None, ("all",)], ids=["tools of its role", "a list that is chosen from"])
async def test_a_job_whose_role_has_a_slip_fails_with_the_sentence(
    tmp_path: Path, tools: tuple[str, ...] | None
) -> None:
    clock = StillClock(NOON)
    async with living_house(tmp_path, clock=clock) as house:
        shift = Shift(house=house, clock=clock)
        job = await shift.job(kind="prompt", tools=tools, retries=0)
        place_of(house, ROLE).write_text("---\nmode: odd\n---\n")
        clock.forward(minutes=61)
        slot = await shift.until(job, "failed")
        assert ("roles/orchestrator.md" in slot.why, "'mode'" in slot.why) == (True, True)
