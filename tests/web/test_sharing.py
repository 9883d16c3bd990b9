"""Sharing a chat or an answer: its reader sees the words as they stood, nobody else sees anything, nobody writes."""

import re

import httpx
import pytest

from cortex.app import Cortex
from cortex.base import messages as message
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from web.pages.sharing import TURNS


async def answered(house: Cortex, user: User, cid: str, said: str, answer: str) -> str:
    """A turn that is done; its key."""
    async with house.runtime.db.transaction(user.id) as repository:
        row = await repository(TurnsRepository).create(NewTurn(f"turn:{new_id()}", cid, said, **PLAIN_TURN))
        await repository(MessagesRepository).add(row.id, 0, message.user(said), is_tainted=False)
        await repository(MessagesRepository).add(row.id, 1, message.assistant(answer), is_tainted=False)
        await repository(TurnsRepository).move(row.id, "running")
        await repository(TurnsRepository).move(row.id, "done")
    return row.id.removeprefix("turn:")


@pytest.fixture
async def chat(house: Cortex, ada: Browser) -> tuple[str, str]:
    """A chat of Ada's with two answers, and the key of the first."""
    made = await house.runtime.db.repository(ConversationsRepository, ada.user.id).create(
        "orchestrator", "auto", "Jam", is_title_tainted=False
    )
    key = await answered(house, ada.user, made.id, "How long does jam keep?", "A **year**, <script>unopened</script>.")
    await answered(house, ada.user, made.id, "And my diary?", "It stays yours.")
    return made.id, key


async def shares(house: Cortex, user: User) -> list[str]:
    return [row.id for row in await house.chat_sharing.given(user)]


async def test_its_reader_is_told_and_reads_it_as_it_stood(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, _ = chat
    assert (await ada.post(f"/c/{cid}/share", people=bob.user.id)).status_code == 303
    (share,) = await shares(house, bob.user)
    await answered(house, ada.user, cid, "Later", "Not for Bob.")
    assert "Ada shared a chat with you: Jam" in (await bob.get("/notifications")).text
    assert f"/shared/{share}" in (await bob.get("/shared")).text
    page = (await bob.get(f"/shared/{share}")).text
    assert "How long does jam keep?" in page
    assert "<strong>year</strong>" in page
    assert "<script>unopened" not in page
    assert "It stays yours." in page
    assert "Not for Bob." not in page
    assert not re.search(r"<textarea|/edit/|/again", page)


async def test_one_answer_does_not_tell_the_name_of_its_chat(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, key = chat
    await ada.post(f"/c/{cid}/rename", title="Where the presents are")
    await ada.post(f"/c/{cid}/share", people=bob.user.id, turn=key)
    (share,) = await shares(house, bob.user)
    for path in ("/notifications", "/shared", f"/shared/{share}"):
        page = (await bob.get(path)).text
        assert "How long does jam keep" in page
        assert "presents" not in page


async def test_a_long_one_is_read_in_stretches(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, _ = chat
    for number in range(TURNS):
        await answered(house, ada.user, cid, f"Question {number}", f"Answer {number}.")
    await ada.post(f"/c/{cid}/share", people=bob.user.id)
    (share,) = await shares(house, bob.user)
    page = (await bob.get(f"/shared/{share}")).text
    assert page.count('class="turn bot"') == TURNS
    assert f"Answer {TURNS - 1}." not in page
    assert f"/shared/{share}?start={TURNS}" in page
    assert f"Answer {TURNS - 1}." in (await bob.get(f"/shared/{share}?start={TURNS}")).text


async def test_nobody_shares_with_themselves(house: Cortex, ada: Browser, chat: tuple[str, str]) -> None:
    cid, _ = chat
    answer = await ada.post(f"/c/{cid}/share", people=ada.user.id)
    assert answer.status_code == 422
    assert "Choose who may read it." in answer.text


async def test_a_version_that_stood_aside_then_is_not_read_when_it_comes_back(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, _ = chat
    said = await house.runtime.db.repository(TurnsRepository, ada.user.id).list(cid)
    async with house.runtime.db.transaction(ada.user.id) as repository:
        await repository(VersionsRepository).drop_from(cid, said[1].ordinal)
    await answered(house, ada.user, cid, "And my address book?", "It is on the shelf.")
    await ada.post(f"/c/{cid}/share", people=bob.user.id)
    (share,) = await shares(house, bob.user)
    assert "on the shelf" in (await bob.get(f"/shared/{share}")).text
    async with house.runtime.db.transaction(ada.user.id) as repository:
        await repository(VersionsRepository).choose(said[1])
    page = (await bob.get(f"/shared/{share}")).text
    assert "How long does jam keep?" in page
    assert "diary" not in page


async def test_one_answer_is_that_answer_alone(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, key = chat
    await ada.post(f"/c/{cid}/share", people=bob.user.id, turn=key)
    (share,) = await shares(house, bob.user)
    page = (await bob.get(f"/shared/{share}")).text
    assert "How long does jam keep?" in page
    assert "diary" not in page


async def test_it_lets_nobody_into_the_chat_itself(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str]
) -> None:
    cid, key = chat
    await ada.post(f"/c/{cid}/share", people=bob.user.id)
    for path in (f"/c/{cid}", f"/c/{cid}/export.md", f"/c/{cid}/share", f"/c/{cid}/whole/{key}"):
        assert (await bob.get(path)).status_code == 404, path
    assert (await bob.post(f"/c/{cid}/messages", text="hello")).status_code == 404
    assert (await bob.post(f"/c/{cid}/share", people=bob.user.id)).status_code == 404


@pytest.mark.parametrize("by", ["owner", "reader", "deleted"])
async def test_it_ends_by_either_and_with_the_chat(
    house: Cortex, ada: Browser, bob: Browser, chat: tuple[str, str], by: str
) -> None:
    cid, _ = chat
    await ada.post(f"/c/{cid}/share", people=bob.user.id)
    (share,) = await shares(house, bob.user)
    assert "Stop sharing with Bob" in (await ada.get(f"/c/{cid}/share")).text
    ends = {
        "owner": lambda: ada.post(f"/shared/{share}/end"),
        "reader": lambda: bob.post(f"/shared/{share}/end"),
        "deleted": lambda: ada.post(f"/c/{cid}/delete"),
    }
    assert (await ends[by]()).status_code == 303
    assert (await bob.get(f"/shared/{share}")).status_code == 404
    assert await shares(house, bob.user) == []


async def test_nobody_is_no_answer_and_strangers_have_no_share(
    house: Cortex, ada: Browser, chat: tuple[str, str], visitor: httpx.AsyncClient
) -> None:
    cid, _ = chat
    assert "Choose who may read it." in (await ada.post(f"/c/{cid}/share")).text
    assert (await ada.post(f"/c/{cid}/share", people="nobody")).status_code == 404
    empty = await house.conversations.new(ada.user)
    bob = next(one.id for one in await house.chat_sharing.housemates(ada.user))
    assert "no answer to share yet" in (await ada.post(f"/c/{empty.id}/share", people=bob)).text
    assert (await visitor.get("/shared/anything")).status_code in (303, 302)
