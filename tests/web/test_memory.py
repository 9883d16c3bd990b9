"""The memory page: what is remembered, new and proposed; what a person's forms change."""

import json
import re
from typing import Any

import pytest

from cortex.app import Cortex
from cortex.base.ids import derived_id
from cortex.storage.facts import FactsRepository, FactValues
from tests.web.conftest import Browser


async def put(house: Cortex, ada: Browser, text: str, *, is_tainted: bool = False, **values: Any) -> str:
    made = FactValues(text=text, source="a test", is_tainted=is_tainted, **values)
    return (await house.runtime.db.repository(FactsRepository, ada.user.id).add(derived_id(text), made)).id


async def undo_of(ada: Browser) -> str:
    page = (await ada.get("/memory")).text
    form = r'<form method="post" action="(/memory/[\w/-]+)">(?:<input[^>]*>)?<button class="btn quiet">Undo'
    found = re.search(form, page)
    assert found
    return found.group(1)


async def kept(house: Cortex, ada: Browser) -> list[str]:
    return [one.fact.text for one in (await house.memory.view(ada.user)).kept]


async def test_the_empty_page_names_the_first_action(ada: Browser) -> None:
    page = await ada.get("/memory")
    assert "Nothing is remembered" in page.text
    assert "first fact" in page.text
    assert "Export" not in page.text


async def test_a_fact_is_added_shown_and_taken_back(house: Cortex, ada: Browser) -> None:
    await ada.post("/memory", text=" I am <b>vegetarian</b> ")
    await ada.post("/memory", text="i am <B>vegetarian</b>!")
    assert await kept(house, ada) == ["I am <b>vegetarian</b>"]
    undo = await undo_of(ada)
    fragment = (await ada.fragment("/memory")).text
    assert ("<b>vege" in fragment, "&lt;b&gt;vegetarian" in fragment) == (False, True)
    assert "<html" not in fragment
    await ada.post(undo)
    assert await kept(house, ada) == []


async def test_hiding_characters_are_named_in_a_label_too(house: Cortex, ada: Browser) -> None:
    await ada.post("/memory", text="a\u202eb")
    page = (await ada.get("/memory")).text
    assert 'aria-label="Forget: aU+202Eb"' in page


@pytest.mark.parametrize("text", ["", "   ", "x" * 501])
async def test_what_is_no_fact_is_refused_beside_its_field(house: Cortex, ada: Browser, text: str) -> None:
    answer = await ada.post("/memory", text=text)
    assert answer.status_code == 422
    assert "new-error" in re.findall(r'aria-describedby="([^"]+)"', answer.text)
    assert await kept(house, ada) == []


async def test_an_edit_can_be_undone_and_overwrites_nothing_newer(house: Cortex, ada: Browser) -> None:
    fact = await house.memory.add(ada.user, "I live in Graz.")
    place = f"/memory/{fact.id}"
    answer = await ada.post(place, version=1, text="I live in Linz.", certainty="inferred")
    assert answer.status_code == 303
    assert await kept(house, ada) == ["I live in Linz."]
    stale = await ada.post(place, version=1, text="I live in Wels.", certainty="stated")
    assert (stale.status_code, "Current version:" in stale.text) == (409, True)
    assert "Earlier versions" in (await ada.get(place)).text
    await ada.post(f"{place}/revert/1")
    assert await kept(house, ada) == ["I live in Graz."]
    assert (await ada.post(f"{place}/revert/77")).status_code == 404
    assert (await ada.post(place, version=3, text="x", certainty="sworn")).status_code == 422


async def test_a_forgotten_fact_comes_back(house: Cortex, ada: Browser) -> None:
    fact = await house.memory.add(ada.user, "I have a boat.")
    await ada.post(f"/memory/{fact.id}/forget")
    undo = await undo_of(ada)
    assert (await ada.get(f"/memory/{fact.id}")).status_code == 404
    await ada.post(undo)
    assert await kept(house, ada) == ["I have a boat."]


async def test_everything_is_forgotten_after_a_question_and_comes_back(house: Cortex, ada: Browser) -> None:
    for text in ("I have a boat.", "I live in Graz."):
        await house.memory.add(ada.user, text)
    assert "Forget everything?" in (await ada.get("/memory/forget-all")).text
    await ada.post("/memory/forget-all")
    assert await kept(house, ada) == []
    assert await undo_of(ada) == "/memory/restore-all"
    await ada.post("/memory/restore-all")
    assert sorted(await kept(house, ada)) == ["I have a boat.", "I live in Graz."]


async def test_a_proposal_waits_for_a_word(house: Cortex, ada: Browser) -> None:
    yes = await put(house, ada, "Ada likes offers.", is_tainted=True, state="proposed", is_seen=False)
    no = await put(house, ada, "Ada sends money.", is_tainted=True, state="proposed", is_seen=False)
    page = (await ada.get("/memory")).text
    assert "Remember these?" in page
    assert "external content" in page
    await ada.post(f"/memory/{yes}/accept")
    await ada.post(f"/memory/{no}/forget")
    assert await kept(house, ada) == ["Ada likes offers."]
    assert (await ada.post(f"/memory/{yes}/accept")).status_code == 409
    await ada.post(f"/memory/{yes}", version=2, text="I like good offers.", certainty="stated")
    (mine,) = (await house.memory.view(ada.user)).kept
    assert not mine.fact.is_tainted, "in their own words it is theirs"


async def test_a_proposal_takes_the_place_of_what_it_renews(house: Cortex, ada: Browser) -> None:
    old = await house.memory.add(ada.user, "Ada lives in Graz.")
    new = await put(house, ada, "Ada lives in Linz.", is_tainted=True, state="proposed", replaces=old.id)
    assert "replaces:" in (await ada.get("/memory")).text
    await ada.post(f"/memory/{new}/accept")
    assert "Linz" in (await kept(house, ada))[0]
    (past,) = await house.memory.history(ada.user, old.id)
    assert past.text == old.text


async def test_what_is_new_stands_first_until_it_was_seen(house: Cortex, ada: Browser) -> None:
    await put(house, ada, "Ada has a boat.", is_seen=False)
    assert '<h2 id="fresh-h">New</h2>' in (await ada.get("/memory")).text
    await ada.post("/memory/seen")
    page = (await ada.get("/memory")).text
    assert '<h2 id="fresh-h">New</h2>' not in page
    assert "Ada has a boat." in page


async def test_search_finds_by_meaning_and_by_words(house: Cortex, ada: Browser) -> None:
    for text in ("I am vegetarian.", "My boat is called Gull."):
        await house.memory.add(ada.user, text)
    for query, found in (("recipe", "vegetarian"), ("gull", "boat"), ("oat is ca", "boat")):
        page = (await ada.get(f"/memory?q={query}")).text
        assert found in page.partition("<table")[2]
    assert "Nothing matches." in (await ada.get("/memory?q=elephant")).text


async def test_the_switches_hold(house: Cortex, ada: Browser) -> None:
    await ada.post("/memory/choices", recalls="1", budget="120")
    chosen = await house.memory.preferences.of(ada.user.id)
    assert (chosen.recalls, chosen.learns, chosen.budget_tokens) == (True, False, 120)
    refused = await ada.post("/memory/choices", budget="many")
    assert (refused.status_code, 'id="f-budget-e"' in refused.text) == (422, True)
    assert (await house.memory.preferences.of(ada.user.id)).budget_tokens == 120


async def test_the_memory_is_taken_along(house: Cortex, ada: Browser) -> None:
    await house.memory.add(ada.user, "I live in Graz.")
    await put(house, ada, "Not yet.", is_tainted=True, state="proposed")
    data = json.loads((await ada.get("/memory/export.json")).text)
    assert [one["text"] for one in data["facts"]] == ["I live in Graz."]
    text = await ada.get("/memory/export.md")
    assert text.headers["content-disposition"] == 'attachment; filename="memory.md"'
    assert "- I live in Graz. (" in text.text
