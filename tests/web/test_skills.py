"""The pages of skills: what a person writes, tries, renames, deletes and takes back; every slip is named."""

import re

import pytest

from cortex.app import Cortex
from cortex.services.tools.skills import EXAMPLE, SkillsService
from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of
from tests.web.conftest import Browser
from tests.web.marks import marks

FRAGMENT = {"HX-Request": "true", "HX-Request-Type": "partial"}
TEXT = "---\ntitle: Invoices <b>\ndescription: How we number invoices\n---\nNumber them.\n"


@pytest.fixture
def skills(house: Cortex) -> SkillsService:
    return SkillsService(house.runtime.db, house.tools)


async def written(skills: SkillsService, ada: Browser) -> str:
    name = await skills.create(ada.user, "Invoices", "How we number invoices")
    await skills.write(ada.user, name, TEXT, (await skills.read(ada.user, name)).version)
    return name


async def test_the_empty_page_shows_an_example_to_begin_with(ada: Browser, skills: SkillsService) -> None:
    page = (await ada.get("/skills")).text
    assert "No skills yet." in page
    assert "plan my week" in page
    answer = await ada.post("/skills", example="1")
    assert answer.headers["location"] == "/skills/weekly-review"
    assert (await skills.read(ada.user, "weekly-review")).text == EXAMPLE
    (row,) = await skills.list(ada.user)
    assert row.error == ""
    assert "No skills yet." not in (await ada.fragment("/skills")).text


async def test_a_new_skill_is_opened_and_kept_as_a_file(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/skills", title="Über uns", description="Wer wir sind")
    assert answer.headers["location"] == "/skills/%C3%BCber-uns"
    assert "title: &#34;Über uns&#34;" in (await ada.get("/skills/%C3%BCber-uns")).text
    assert "Wer wir sind" in (await Home(house.settings.home, ada.user.id).read("skills/über-uns.md")).text


@pytest.mark.parametrize(
    ("title", "description", "field"),
    [("", "words", "title"), ("../..", "words", "title"), ("A", "", "description"), ("A" * 90, "words", "title")],
)
async def test_what_cannot_be_a_skill_is_refused_beside_its_field(
    ada: Browser, title: str, description: str, field: str
) -> None:
    answer = await ada.post("/skills", title=title, description=description)
    assert answer.status_code == 422
    assert f'aria-describedby="f-{field}-e"' in answer.text
    assert f'value="{description}"' in answer.text


async def test_the_list_names_what_is_wrong_and_what_each_costs(
    house: Cortex, ada: Browser, skills: SkillsService
) -> None:
    name = await written(skills, ada)
    await Home(house.settings.home, ada.user.id).write("skills/broken.md", "---\ntitle A\n---\nBody\n")
    page = (await ada.fragment("/skills")).text
    assert "Invoices &lt;b&gt;" in page
    assert "skills/broken.md, line 2" in page
    (row,) = [row for row in await skills.list(ada.user) if row.name == name]
    assert f'data-l="Shown">{row.line_tokens}<' in page
    assert f'data-l="Read">{row.read_tokens}<' in page
    broken = await ada.get("/skills/broken")
    assert "Not used." in broken.text
    assert "title A" in broken.text, "the text is there to be mended"


async def test_a_slip_is_named_beside_the_text_and_what_was_typed_stays(ada: Browser, skills: SkillsService) -> None:
    name = await written(skills, ada)
    kept = await skills.read(ada.user, name)
    answer = await ada.post(f"/skills/{name}", text="---\ntitle: Mine", version=kept.version, messages="try me")
    assert answer.status_code == 422
    assert "never closed" in answer.text
    assert "title: Mine" in answer.text
    assert "try me" in answer.text
    assert f'value="{kept.version}"' in answer.text
    assert (await skills.read(ada.user, name)).text == kept.text


async def test_saving_over_a_change_shows_both_and_loses_neither(ada: Browser, skills: SkillsService) -> None:
    name = await written(skills, ada)
    before = await skills.read(ada.user, name)
    await skills.write(ada.user, name, TEXT.replace("Number", "Theirs"), before.version)
    answer = await ada.post(f"/skills/{name}", text=TEXT.replace("Number", "Mine"), version=before.version)
    assert answer.status_code == 409
    assert "Theirs them." in answer.text
    assert "Mine them." in answer.text
    now = await skills.read(ada.user, name)
    assert f'value="{now.version}"' in answer.text
    await ada.post(f"/skills/{name}", text=TEXT.replace("Number", "Mine"), version=now.version)
    assert "Mine them." in (await skills.read(ada.user, name)).text


async def test_messages_are_tried_against_the_text_as_typed(ada: Browser, skills: SkillsService) -> None:
    name = await written(skills, ada)
    typed = TEXT.replace("Invoices <b>", "Sourdough").replace("number invoices", "feed the starter")
    fields = {"text": typed, "messages": "feed the starter\nturn off the lights"}
    answer = await ada.http.post(f"/skills/{name}/try", data=fields, headers=FRAGMENT)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert "<textarea" not in answer.text
    told = [" ".join(re.sub("<[^>]+>", " ", row).split()) for row in re.findall("<li>.*?</li>", answer.text, re.DOTALL)]
    assert [("not shown" in row, row.split()[0]) for row in told] == [(False, "feed"), (True, "turn")]
    assert "(feed, starter)" in answer.text
    page = await ada.post(f"/skills/{name}/try", **fields)
    assert "Sourdough" in page.text, "without a script the whole page comes back with what was typed"
    assert "(feed, starter)" in page.text
    assert (await skills.read(ada.user, name)).text == TEXT


async def test_a_message_is_tried_against_all_of_them(ada: Browser, skills: SkillsService) -> None:
    await written(skills, ada)
    part = (await ada.fragment("/skills?message=number+my+invoices")).text
    assert "<b>Invoices &lt;b&gt;</b>" in part
    assert "<table" not in part
    assert "no title" in (await ada.fragment("/skills?message=turn+off+the+lights")).text
    page = (await ada.get("/skills?message=number+my+invoices")).text
    assert marks(page).values["message"] == "number my invoices"
    assert "close in wording" in page


async def test_a_renamed_skill_is_found_under_its_new_name(ada: Browser, skills: SkillsService) -> None:
    name = await written(skills, ada)
    await skills.create(ada.user, "Taken", "words")
    refused = await ada.post(f"/skills/{name}/rename", to="Taken")
    assert refused.status_code == 422
    assert 'aria-describedby="to-error"' in refused.text
    assert 'value="Taken"' in refused.text
    answer = await ada.post(f"/skills/{name}/rename", to="My bills")
    assert answer.headers["location"] == "/skills/my-bills"
    assert (await ada.get(f"/skills/{name}")).status_code == 404
    assert (await skills.read(ada.user, "my-bills")).text == TEXT


async def test_a_deleted_skill_comes_back_as_it_was(ada: Browser, skills: SkillsService) -> None:
    name = await written(skills, ada)
    await ada.post(f"/skills/{name}/delete")
    page = (await ada.get("/skills")).text
    assert f"Deleted: {name}" in page
    undo = re.search(r'action="(/skills/[\w-]+/restore)"', page)
    assert undo
    await ada.post(undo.group(1))
    assert (await skills.read(ada.user, name)).text == TEXT


async def test_words_from_outside_say_so_until_they_are_saved(
    house: Cortex, ada: Browser, skills: SkillsService
) -> None:
    name = await written(skills, ada)
    await house.runtime.db.repository(PreferencesRepository, ada.user.id).set(mark_of(f"skills/{name}.md"), True)
    assert ">external content<" in (await ada.get("/skills")).text
    assert "A tool wrote" in (await ada.get(f"/skills/{name}")).text
    await ada.post(f"/skills/{name}", text=TEXT, version=(await skills.read(ada.user, name)).version)
    assert ">external content<" not in (await ada.get("/skills")).text


async def test_why_these_tools_names_the_skills_that_were_shown(ada: Browser, skills: SkillsService) -> None:
    await written(skills, ada)
    why = (await ada.post("/why", text="number my invoices")).text
    assert "Invoices &lt;b&gt;" in why
    assert "close in wording" in why
    assert "Invoices" not in (await ada.post("/why", text="add milk to my shopping list")).text
