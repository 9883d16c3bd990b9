"""A tool's description in the admin's hands: its effect is shown first, and what is saved is what models are sent."""

import re

import pytest

from cortex.app import Cortex
from cortex.storage.audit import AuditRepository
from tests.web.conftest import Browser

ONE = "/admin/tools/task_create"
PLACE = f"{ONE}/description"
WORDS = "Put a zorblax on the frobnication pile."
LONG = f"{WORDS}\r\n\r\n  Only   for zorblaxes that are ripe. "


async def told(house: Cortex) -> tuple[str, str, str]:
    entry = next(one for one in (await house.tools.snapshot()).entries if one.name == "task_create")
    return entry.full.description, entry.stub.description, entry.line


async def test_the_effect_is_shown_with_its_tokens_and_nothing_is_kept(house: Cortex, ada: Browser) -> None:
    before = await told(house)
    answer = await ada.post(PLACE, description=LONG, messages="zorblaxes on a pile", do="effect")
    assert answer.status_code == 200
    assert "What would change" in answer.text
    assert "Tokens in full" in answer.text
    assert "Only   for zorblaxes" in answer.text
    assert re.search("<span>zorblaxes on a pile</span><span>(not found|[2-5]) → 1</span>", answer.text)
    assert await told(house) == before
    assert not await house.tool_settings.all()


async def test_what_is_saved_is_sent_searched_by_and_shown(house: Cortex, ada: Browser, bob: Browser) -> None:
    old = await house.tools.snapshot()
    await ada.post(PLACE, description=LONG, do="save")
    new = await house.tools.snapshot()
    assert await told(house) == (
        f"{WORDS}\nOnly for zorblaxes that are ripe.",
        WORDS,
        "task_create: Put a zorblax on the frobnication pile",
    )
    assert new.version != old.version
    costs = {one.name: one.tokens_full for one in new.entries}
    assert costs["task_create"] > next(one.tokens_full for one in old.entries if one.name == "task_create")
    found = await house.tools.discover(bob.user, "orchestrator", "frobnication of ripe zorblaxes")
    assert found.names[0] == "task_create"
    assert WORDS in found.text
    page = (await ada.get(ONE)).text
    assert WORDS in page
    assert "Shipped description" in page


async def test_the_switches_beside_it_leave_the_description_alone(house: Cortex, ada: Browser) -> None:
    await ada.post(PLACE, description=WORDS, do="save")
    await ada.post(ONE, is_on="1", sending="always")
    assert (await told(house))[0] == WORDS
    await ada.post(ONE, default="sending")
    assert (await told(house))[0] == WORDS
    assert (await house.tool_settings.all())["task_create"].sending is None


async def test_it_goes_back_to_the_shipped_words_and_every_step_can_be_undone(house: Cortex, ada: Browser) -> None:
    shipped = (await told(house))[0]
    await ada.post(PLACE, description=WORDS, do="save")
    await ada.post(PLACE, do="default")
    assert (await told(house))[0] == shipped
    assert not await house.tool_settings.all()
    entries = await house.runtime.db.repository(AuditRepository).list(subject="task_create")
    assert [entry.action for entry in entries] == ["tool.changed", "tool.changed"]
    assert f'"description":[null,"{WORDS}"]' in entries[1].detail
    answer = await ada.post(f"{PLACE}/undo/{entries[0].number}")
    assert answer.headers["location"] == f"{ONE}#schema"
    assert (await told(house))[0] == WORDS
    assert f'action="{PLACE}/undo/{entries[0].number + 1}"' not in (await ada.get(ONE)).text


async def test_saving_offers_the_way_back_and_no_change_offers_none(house: Cortex, ada: Browser) -> None:
    await ada.post(PLACE, description=WORDS, do="save")
    (entry,) = await house.runtime.db.repository(AuditRepository).list(subject="task_create")
    assert f'action="{PLACE}/undo/{entry.number}"' in (await ada.get(ONE)).text
    await ada.post(PLACE, description=WORDS, do="save")
    page = (await ada.get(ONE)).text
    assert "Nothing was changed." in page
    assert "/undo/" not in page


async def test_an_undo_that_came_too_late_changes_nothing(house: Cortex, ada: Browser) -> None:
    await ada.post(PLACE, description=WORDS, do="save")
    (entry,) = await house.runtime.db.repository(AuditRepository).list(subject="task_create")
    await ada.post(PLACE, description="Something else.", do="save")
    assert (await ada.post(f"{PLACE}/undo/{entry.number}")).status_code == 409
    assert (await told(house))[0] == "Something else."
    assert (await ada.post(f"/admin/tools/git_log/description/undo/{entry.number}")).status_code == 404
    assert (await ada.post(f"{PLACE}/undo/999")).status_code == 404


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ("  \n ", "Say when to use the tool"),
        ("?!", "Say when to use the tool"),
        ("words " * 20, "The first line has 119 characters"),
        ("Add a task.\n" + "words " * 200, "at most 1,000 fit"),
        ("Add a ta\u200bsk.", "invisible characters"),
    ],
    ids=["empty", "no word", "first line too long", "too long", "hidden"],
)
@pytest.mark.parametrize("do", ["effect", "save"])
async def test_a_description_that_cannot_be_sent_is_refused_and_kept_in_the_form(
    house: Cortex, ada: Browser, description: str, said: str, do: str
) -> None:
    answer = await ada.post(PLACE, description=description, do=do)
    assert answer.status_code == 422
    assert said in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert not await house.tool_settings.all()


async def test_the_tools_that_find_others_keep_their_words(ada: Browser) -> None:
    assert 'id="f-description"' not in (await ada.get("/admin/tools/tools_discover")).text
    answer = await ada.post("/admin/tools/tools_discover/description", description=WORDS, do="save")
    assert answer.status_code == 422
    assert (await ada.post("/admin/tools/nothing/description", description=WORDS, do="save")).status_code == 404


async def test_the_effect_alone_comes_as_a_fragment(ada: Browser) -> None:
    answer = await ada.http.post(
        PLACE, data={"description": WORDS}, headers={"HX-Request": "true", "HX-Request-Type": "partial"}
    )
    assert "Tokens in short" in answer.text
    assert "<textarea" not in answer.text
