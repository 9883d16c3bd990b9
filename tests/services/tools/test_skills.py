"""Skills in a living house: shown in the tail, read by the tool, kept apart, brought back; one slip costs one skill."""

import os

import pytest

from cortex.base import tokens
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.messages import Text
from cortex.base.skill import SKILLS_MAX
from cortex.base.user import User
from cortex.services.tools.plans import opening
from cortex.services.tools.skills import REMOVED_KEPT, SkillsService
from cortex.storage.home import Home
from cortex.storage.messages import MessagesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from tests.living_house import LivingHouse

BODY = "Number them 2026-001 and so on. Never round."


@pytest.fixture
def skills(house: LivingHouse) -> SkillsService:
    return SkillsService(house.cortex.runtime.db, house.cortex.tools)


def home(house: LivingHouse, user: User) -> Home:
    return Home(house.cortex.settings.home, user.id)


async def invoices(skills: SkillsService, user: User) -> str:
    return await skills.create(user, "Writing invoices", "How we number and word invoices", BODY)


async def test_a_new_skill_is_a_file_named_after_its_title(house: LivingHouse, skills: SkillsService) -> None:
    assert await invoices(skills, house.admin) == "writing-invoices"
    kept = await home(house, house.admin).read("skills/writing-invoices.md")
    assert (
        kept.text == f'---\ntitle: "Writing invoices"\ndescription: "How we number and word invoices"\n---\n\n{BODY}\n'
    )
    (row,) = await skills.list(house.admin)
    assert (row.name, row.title, row.error, row.is_tainted) == ("writing-invoices", "Writing invoices", "", False)
    assert 0 < row.line_tokens < 30
    assert 0 < row.read_tokens < 30


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Über uns: 3 Wege", "über-uns-3-wege"),
        ("../../etc/passwd", "etc-passwd"),
        ("2026", "2026"),
        ('"quoted"', "quoted"),
        ("[a, list]", "a-list"),
    ],
)
async def test_every_title_makes_a_plain_name_and_is_read_back(
    house: LivingHouse, skills: SkillsService, title: str, name: str
) -> None:
    assert await skills.create(house.admin, title, "7") == name
    (row,) = await skills.list(house.admin)
    assert (row.title, row.description, row.error) == (title, "7", "")


@pytest.mark.parametrize(
    ("title", "description", "field"),
    [
        ("", "words", "title"),
        ("...", "words", "title"),
        ("A", "  ", "description"),
        ("A" * 81, "words", "title"),
        ("A", "w" * 1_025, "description"),
    ],
)
async def test_what_no_skill_can_be_called_is_refused_beside_its_field(
    house: LivingHouse, skills: SkillsService, title: str, description: str, field: str
) -> None:
    with pytest.raises(UserError) as refused:
        await skills.create(house.admin, title, description)
    assert refused.value.field == field
    assert await skills.list(house.admin) == []


async def test_two_skills_of_one_name_or_too_many_are_refused(house: LivingHouse, skills: SkillsService) -> None:
    await invoices(skills, house.admin)
    with pytest.raises(UserError, match="named 'writing-invoices' already"):
        await invoices(skills, house.admin)
    folder = home(house, house.admin).path / "skills"
    for number in range(SKILLS_MAX):
        (folder / f"a{number:03}.md").write_text("---\ntitle: A\ndescription: B\n---\nC\n")
    with pytest.raises(UserError, match="The limit is"):
        await skills.create(house.admin, "One more", "words")
    rows = await skills.list(house.admin)
    assert [row.name for row in rows if row.error] == ["writing-invoices"]
    assert "Number them" in (await skills.read(house.admin, "writing-invoices")).text


async def test_a_slip_in_a_file_is_named_and_costs_the_other_skills_nothing(
    house: LivingHouse, skills: SkillsService
) -> None:
    await invoices(skills, house.admin)
    folder = home(house, house.admin).path / "skills"
    (folder / "broken.md").write_text("---\ntitle A\n---\nBody\n")
    (folder / "bytes.md").write_bytes(b"\xff\xfe\x00")
    os.symlink("/etc/passwd", folder / "link.md")
    (folder / "notes.txt").write_text("no skill")
    errors = {row.name: row.error for row in await skills.list(house.admin)}
    assert errors == {
        "broken": "skills/broken.md, line 2: 'title A' is not `key: value`.",
        "bytes": "'bytes.md' is not UTF-8 text.",
        "writing-invoices": "",
    }
    tried = await skills.tried(house.admin, "write the invoice for Acme")
    assert [fit.name for fit in tried.shown] == ["writing-invoices"]


async def test_saving_checks_first_and_never_over_anothers_change(house: LivingHouse, skills: SkillsService) -> None:
    name = await invoices(skills, house.admin)
    before = await skills.read(house.admin, name)
    with pytest.raises(UserError, match="never closed") as refused:
        await skills.write(house.admin, name, "---\ntitle: A", before.version)
    assert refused.value.field == "text"
    assert (await skills.read(house.admin, name)).text == before.text
    await skills.write(house.admin, name, before.text.replace("round", "guess").replace("\n", "\r\n"), before.version)
    assert "Never guess." in (await skills.read(house.admin, name)).text
    with pytest.raises(Conflict):
        await skills.write(house.admin, name, before.text, before.version)


async def test_a_renamed_skill_keeps_its_text_and_its_mark(house: LivingHouse, skills: SkillsService) -> None:
    name = await invoices(skills, house.admin)
    marks = house.rows(PreferencesRepository)
    await marks.set(mark_of(f"skills/{name}.md"), True)
    assert await skills.rename(house.admin, name, "Bills") == "bills"
    (row,) = await skills.list(house.admin)
    assert (row.name, row.is_tainted) == ("bills", True)
    await skills.create(house.admin, "Other", "words")
    with pytest.raises(UserError, match="named 'other' already"):
        await skills.rename(house.admin, "bills", "Other")
    assert await skills.rename(house.admin, "bills", "bills") == "bills"
    assert not next(row for row in await skills.list(house.admin) if row.name == "other").is_tainted


async def test_a_mark_of_outside_goes_when_a_person_saves_the_text(house: LivingHouse, skills: SkillsService) -> None:
    name = await invoices(skills, house.admin)
    await house.rows(PreferencesRepository).set(mark_of(f"skills/{name}.md"), True)
    assert (await skills.tried(house.admin, "write the invoice for Acme")).shown == ()
    kept = await skills.read(house.admin, name)
    await skills.write(house.admin, name, kept.text, kept.version)
    assert [fit.name for fit in (await skills.tried(house.admin, "write the invoice for Acme")).shown] == [name]


async def test_a_deleted_skill_comes_back_as_it_was(house: LivingHouse, skills: SkillsService) -> None:
    name = await invoices(skills, house.admin)
    before = (await skills.read(house.admin, name)).text
    marks = house.rows(PreferencesRepository)
    await marks.set(mark_of(f"skills/{name}.md"), True)
    await skills.remove(house.admin, name)
    assert await skills.list(house.admin) == []
    assert await marks.names("tainted:") == []
    await skills.restore(house.admin, name)
    back = await skills.read(house.admin, name)
    assert (back.text, back.is_tainted) == (before, True)
    with pytest.raises(NotFound):
        await skills.restore(house.admin, name)


async def test_only_the_last_few_come_back_and_never_over_a_new_one(house: LivingHouse, skills: SkillsService) -> None:
    for number in range(REMOVED_KEPT + 1):
        await skills.remove(house.admin, await skills.create(house.admin, f"Skill {number}", "words"))
    with pytest.raises(NotFound):
        await skills.restore(house.admin, "skill-0")
    await skills.create(house.admin, "Skill 1", "new words")
    with pytest.raises(Conflict):
        await skills.restore(house.admin, "skill-1")
    await skills.remove(house.admin, "skill-1")
    await skills.restore(house.admin, "skill-1")
    assert (await skills.list(house.admin))[0].description == "new words"


async def test_a_trial_says_what_the_text_as_typed_would_do(house: LivingHouse, skills: SkillsService) -> None:
    name = await skills.create(house.admin, "Rye", "Old words", "Number them")
    typed = "---\ntitle: Bread\ndescription: Sourdough and its starter\ntools: [task_list, oven_set]\n---\nKnead.\n"
    trial = await skills.trial(house.admin, name, typed, "feed the sourdough\n\nwrite the invoice\n")
    assert (trial.error, trial.unknown_tools) == ("", ("oven_set",))
    assert [(tried.message, tried.is_shown) for tried in trial.tried] == [
        ("feed the sourdough", True),
        ("write the invoice", False),
    ]
    assert trial.read_tokens == tokens.count("# Bread\n\nKnead.")
    assert "never closed" in (await skills.trial(house.admin, name, "---\ntitle: A", "hello")).error
    assert "Number them" in (await skills.read(house.admin, name)).text, "a trial saves nothing"


async def test_titles_ride_behind_the_message_and_the_answer_uses_the_body_that_was_read(
    house: LivingHouse, skills: SkillsService
) -> None:
    name = await invoices(skills, house.admin)
    here = await house.conversation()
    await house.say(here, f"read the skill `{name}` and tell me how I number them")
    stored = await house.rows(MessagesRepository).of_conversation(here)
    said, tail = [part.text for part in stored[0].message.parts if isinstance(part, Text)]
    assert said == f"read the skill `{name}` and tell me how I number them"
    assert f"- {name}: Writing invoices. How we number and word invoices" in tail
    assert BODY not in tail
    (card,) = await house.events(here, "tool.result")
    assert BODY in card.payload["text"]
    assert BODY in stored[-1].message.text
    first, *_, last = await house.receipts(here)
    assert [one["name"] for one in first["skills"]] == [one["name"] for one in last["skills"]] == [name]
    assert first["skills_tokens"] > 10
    assert last["skills_tokens"] == 0, "titles are told once a message"


async def test_the_titles_are_paid_by_the_message_and_never_by_the_prefix(
    house: LivingHouse, skills: SkillsService
) -> None:
    asked = "write the invoice for Acme"
    without = await house.cortex.planning.preview(house.admin, None, asked, "auto")
    await invoices(skills, house.admin)
    with_skill = await house.cortex.planning.preview(house.admin, None, asked, "auto")
    again = await house.cortex.planning.preview(house.admin, None, "add milk to my shopping list", "auto")
    assert abs(with_skill["message_tokens"] - without["message_tokens"]) <= 3
    assert with_skill["skills_tokens"] > 0
    assert (again["skills"], again["skills_tokens"]) == ([], 0)


async def test_titles_stand_in_the_first_rounds_tail_and_nowhere_else(
    house: LivingHouse, skills: SkillsService
) -> None:
    await invoices(skills, house.admin)
    role = await house.cortex.roles.role(house.admin, "orchestrator")
    asked = opening(house.admin, role, "write the invoice for Acme", house.cortex.runtime.clock())
    first = await house.cortex.tools.plan_turn(asked)
    second = await house.cortex.tools.plan_turn(asked.with_given(round=2, memory=first.plan.memory))
    assert "Writing invoices" in first.round.tail
    assert "Writing invoices" not in first.round.system + first.tools
    assert second.round.tail == ""
    assert [tool.name for tool in second.round.tools] == [tool.name for tool in first.round.tools]
    assert second.round.system == first.round.system


async def test_nobody_is_shown_or_told_anothers_skills(house: LivingHouse, skills: SkillsService) -> None:
    name = await invoices(skills, house.admin)
    assert await skills.list(house.member) == []
    assert (await skills.tried(house.member, "write the invoice for Acme")).shown == ()
    for act in (skills.read, skills.remove, skills.restore):
        with pytest.raises(NotFound):
            await act(house.member, name)
    receipt = await house.cortex.planning.preview(house.member, None, "write the invoice for Acme", "auto")
    assert receipt["skills"] == []
