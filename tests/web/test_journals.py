"""The pages of journals: nothing that anybody wrote is lost, and what is shown does nothing."""

import re

import pytest

from cortex.app import Cortex
from cortex.ports.aether import EntryChange, Journals
from cortex.ports.journals import ASSISTANT
from cortex.services.content.own_journals import OwnJournals
from tests.web.conftest import Browser


@pytest.fixture
async def journal(ada: Browser) -> str:
    answer = await ada.post("/journals", name="Garden")
    return str(answer.headers["location"]).rpartition("/")[2]


async def written(ada: Browser, journal: str, title: str = "First frost", text: str = "The dahlias are in.") -> str:
    key = re.findall(r'name="key" value="(\w+)"', (await ada.get(f"/journals/{journal}/new")).text)[0]
    answer = await ada.post(f"/journals/{journal}/new", key=key, title=title, text=text)
    assert answer.headers["location"] == f"/journal-entries/{key}"
    return str(key)


def assistant(house: Cortex, person: Browser) -> Journals:
    return OwnJournals(db=house.runtime.db, user_id=person.user.id, by=ASSISTANT)


async def test_an_empty_list_says_what_to_do(ada: Browser) -> None:
    page = (await ada.get("/journals")).text
    assert "No journals yet." in page
    assert "my garden journal" in page


async def test_a_journal_is_made_opened_and_listed(ada: Browser, journal: str) -> None:
    assert "No entries yet." in (await ada.get(f"/journals/{journal}")).text
    assert f'href="/journals/{journal}"' in (await ada.fragment("/journals")).text


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "GARDEN"])
async def test_a_name_that_cannot_be_one_is_refused_beside_its_field(ada: Browser, journal: str, name: str) -> None:
    answer = await ada.post("/journals", name=name)
    assert answer.status_code == 422
    assert 'id="new-error"' in answer.text
    assert name.strip() in answer.text


async def test_an_entry_is_written_once_however_often_it_is_sent(ada: Browser, journal: str) -> None:
    key = await written(ada, journal)
    again = await ada.post(f"/journals/{journal}/new", key=key, title="First frost", text="The dahlias are in.")
    assert again.status_code == 303
    page = (await ada.get(f"/journals/{journal}")).text
    assert page.count("/journal-entries/") == 1
    assert "The dahlias are in." in page


async def test_an_entry_is_shown_as_markdown_that_does_nothing(ada: Browser, journal: str) -> None:
    text = "# Beds\n\n**Dug** <script>window.hits=1</script> [x](javascript:alert(1)) ![p](https://evil.example/p)"
    page = (await ada.get(f"/journal-entries/{await written(ada, journal, '<b>T</b>', text)}")).text
    assert "Beds</h3>" in page
    assert "<strong>Dug</strong>" in page
    assert "<script>window" not in page
    assert 'href="javascript' not in page
    assert "<img" not in page
    assert "&lt;b&gt;T" in page


async def test_a_long_entry_is_shortened_and_shown_whole(ada: Browser, journal: str) -> None:
    key = await written(ada, journal, text="line\n" * 1_500 + "the end")
    assert "the end" not in (await ada.get(f"/journal-entries/{key}")).text
    assert "the end" in (await ada.get(f"/journal-entries/{key}?whole=1")).text


async def test_words_that_are_looked_for_are_marked_where_they_stand(ada: Browser, journal: str) -> None:
    await written(ada, journal, "First frost", "Nothing. " * 40 + "An otter <i>came</i> back.")
    await written(ada, journal, "Snow", "No animal.")
    for place in (f"/journals/{journal}", "/journals"):
        page = (await ada.get(f"{place}?q=OTT")).text
        assert "An <mark>otter</mark> &lt;i&gt;came" in page
        assert "Snow" not in page
        assert "Nothing matches." in (await ada.get(f"{place}?q=unicorn")).text
    assert "<mark>First</mark>" in (await ada.get("/journals?q=first")).text


async def test_more_entries_than_a_page_holds_are_on_the_next_one(house: Cortex, ada: Browser, journal: str) -> None:
    own = assistant(house, ada)
    for number in range(30):
        await own.write(f"e{number}", "Garden", f"Day {number}", "the same", False)
    page = (await ada.get(f"/journals/{journal}?q=same")).text
    assert page.count("/journal-entries/") == 25
    older = re.findall(rf'href="(/journals/{journal}\?q=same&amp;after=\w+)"', page)[0].replace("&amp;", "&")
    page = (await ada.get(older)).text
    assert page.count("/journal-entries/") == 5
    assert f'href="/journals/{journal}?q=same"' in page


async def test_saving_over_a_change_shows_both_and_loses_neither(house: Cortex, ada: Browser, journal: str) -> None:
    key = await written(ada, journal)
    await assistant(house, ada).change(key, 1, EntryChange(text="theirs"))
    answer = await ada.post(f"/journal-entries/{key}/edit", version=1, title="Mine", text="mine & all")
    assert answer.status_code == 409
    assert "theirs" in answer.text
    assert "the assistant" in answer.text
    assert "mine &amp; all" in answer.text
    assert (await house.journals.entry(ada.user, key)).text == "theirs"
    version = re.findall(r'name="version" value="(\d+)"', answer.text)[0]
    await ada.post(f"/journal-entries/{key}/edit", version=version, title="Mine", text="mine & all")
    assert (await house.journals.entry(ada.user, key)).text == "mine & all"
    history = (await ada.get(f"/journal-entries/{key}/history")).text
    assert all(words in history for words in ("The dahlias are in.", "theirs", "mine &amp; all"))


async def test_what_was_refused_stays_in_the_form(ada: Browser, journal: str) -> None:
    key = await written(ada, journal)
    answer = await ada.post(f"/journal-entries/{key}/edit", version=1, title=" ", text="kept words")
    assert answer.status_code == 422
    assert "kept words" in answer.text
    answer = await ada.post(f"/journals/{journal}/new", key="k2", title="kept title", text=" ")
    assert answer.status_code == 422
    assert "kept title" in answer.text
    assert (await ada.post(f"/journals/{journal}/new", key="../x", title="a", text="b")).status_code == 422


async def test_saving_nothing_new_makes_no_version(house: Cortex, ada: Browser, journal: str) -> None:
    key = await written(ada, journal)
    await ada.post(f"/journal-entries/{key}/edit", version=1, title="First frost", text="The dahlias are in.")
    assert len(await house.journals.history(ada.user, key)) == 1


async def test_a_version_is_compared_and_brought_back(house: Cortex, ada: Browser, journal: str) -> None:
    key = await written(ada, journal, text="one\ntwo\nthree")
    await ada.post(f"/journal-entries/{key}/edit", version=1, title="Late frost", text="one\n2\nthree")
    page = (await ada.get(f"/journal-entries/{key}/history/1")).text
    assert re.search(r'class="was">.*?two</div>', page)
    assert re.search(r'class="is">.*?2</div>', page)
    assert "<b>First frost</b>" in page
    await ada.post(f"/journal-entries/{key}/history/1", version=2)
    entry = await house.journals.entry(ada.user, key)
    assert (entry.title, entry.text, entry.version) == ("First frost", "one\ntwo\nthree", 3)
    assert (await ada.post(f"/journal-entries/{key}/history/1", version=2)).status_code == 409
    assert (await ada.get(f"/journal-entries/{key}/history/9")).status_code == 404


async def test_texts_too_long_to_compare_are_shown_all_the_same(ada: Browser, journal: str) -> None:
    key = await written(ada, journal, text="x\n" * 2_100)
    await ada.post(f"/journal-entries/{key}/edit", version=1, title="First frost", text="y")
    assert "too long to" in (await ada.get(f"/journal-entries/{key}/history/1")).text


async def test_an_entry_is_removed_and_brought_back(house: Cortex, ada: Browser, journal: str) -> None:
    key = await written(ada, journal)
    await ada.post(f"/journal-entries/{key}/remove", version=1)
    page = await ada.get(f"/journals/{journal}")
    assert f'action="/journal-entries/{key}/bring-back"' in page.text, "the news offers it"
    assert "No entries yet." in page.text
    assert "First frost" in (await ada.get(f"/journals/{journal}?removed=1")).text
    await ada.post(f"/journal-entries/{key}/bring-back")
    await ada.post(f"/journal-entries/{key}/bring-back")
    entry = await house.journals.entry(ada.user, key)
    assert (entry.disabled_at, entry.version) == (None, 3)


async def test_a_journal_is_renamed_removed_and_brought_back(house: Cortex, ada: Browser, journal: str) -> None:
    assert "Garden" in (await ada.fragment(f"/journals/{journal}/rename")).text
    await ada.post(f"/journals/{journal}/rename", version=1, name="Allotment")
    assert (await ada.post(f"/journals/{journal}/rename", version=1, name="Other")).status_code == 409
    assert (await ada.post(f"/journals/{journal}/remove", version=1)).status_code == 409
    await ada.post(f"/journals/{journal}/remove", version=2)
    assert "Restore" in (await ada.get("/journals")).text
    await ada.post("/journals", name="allotment")
    answer = await ada.post(f"/journals/{journal}/bring-back")
    assert (answer.status_code, "already" in answer.text) == (422, True)
    await ada.post(f"/journals/{journal}/rename", version=3, name="Old allotment")
    await ada.post(f"/journals/{journal}/bring-back")
    assert [one.name for one in await house.journals.shelf(ada.user)] == ["allotment", "Old allotment"]


async def test_nothing_is_written_into_a_journal_that_was_removed(ada: Browser, journal: str) -> None:
    await ada.post(f"/journals/{journal}/remove", version=1)
    answer = await ada.post(f"/journals/{journal}/new", key="k1", title="a", text="kept words")
    assert answer.status_code == 409
    assert "kept words" in answer.text


async def test_a_journal_is_downloaded_with_all_its_entries(house: Cortex, ada: Browser, journal: str) -> None:
    own = assistant(house, ada)
    for number in range(120):
        await own.write(f"e{number}", "Garden", f"Day {number}", f"text {number}", False)
    answer = await ada.get(f"/journals/{journal}/export.md")
    assert answer.text.startswith("# Garden\n\n## Day 119\n")
    assert answer.text.count("\n## Day ") == 120
    assert "attachment" in answer.headers["content-disposition"]


async def test_what_came_from_outside_says_so(house: Cortex, ada: Browser) -> None:
    made = await assistant(house, ada).write("e1", "Read on a page", "T", "words", True)
    for path in ("/journals", f"/journals/{made.journal_id}", "/journals?q=words"):
        assert "external content" in (await ada.get(path)).text, path
    assert "ontains external content" in (await ada.get("/journal-entries/e1")).text
    await ada.post(f"/journals/{made.journal_id}/rename", version=1, name="Mine")
    assert "external content" not in (await ada.get("/journals")).text


async def test_anothers_journals_are_not_there(ada: Browser, bob: Browser, journal: str) -> None:
    key = await written(ada, journal)
    for path in (f"/journals/{journal}", f"/journal-entries/{key}", f"/journal-entries/{key}/history/1"):
        assert (await bob.get(path)).status_code == 404
    assert (await bob.post(f"/journals/{journal}/new", key="k9", title="a", text="b")).status_code == 404
    assert "dahlias" not in (await bob.get("/journals?q=dahlias")).text.replace('value="dahlias"', "")
