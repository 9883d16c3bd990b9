"""Chats that other programs exported: read, taken over, found again, taken back; and what they may do."""

import io
import json
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.services.chat.exported_chats import read_export
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import ScriptedServer, Use, rule

HOSTILE = (Path(__file__).parent.parent / "jobs" / "hostile_bodies.txt").read_text(encoding="utf-8").splitlines()
HIDDEN = {"is_visually_hidden_from_conversation": True}


def webui(*said: tuple[str, str], title: str = "Truffles", key: str = "w1") -> dict[str, Any]:
    """A chat as Open WebUI exports it, with a branch that is not shown."""
    nodes: dict[str, Any] = {}
    parent = None
    for number, (role, text) in enumerate(said):
        node = {"id": f"m{number}", "parentId": parent, "role": role, "content": text, "timestamp": 1_700_000_000}
        nodes[f"m{number}"] = node
        parent = f"m{number}"
    nodes["other"] = {"id": "other", "parentId": "m0", "role": "assistant", "content": "not shown"}
    history = {"messages": nodes, "currentId": parent}
    return {"id": key, "title": title, "created_at": 1_700_000_000, "chat": {"title": title, "history": history}}


def chatgpt(*said: tuple[str, Any], title: str = "Soup", key: str = "g1") -> dict[str, Any]:
    """A chat as ChatGPT exports it, with a hidden message at its root."""
    hidden = {"content_type": "text", "parts": ["secret profile"]}
    root = {"author": {"role": "user"}, "content": hidden, "metadata": HIDDEN}
    mapping: dict[str, Any] = {"root": {"id": "root", "message": root, "parent": None, "children": []}}
    parent = "root"
    for number, (role, text) in enumerate(said):
        content = text if isinstance(text, dict) else {"content_type": "text", "parts": [text]}
        message = {"author": {"role": role}, "content": content, "create_time": 1_650_000_000.5, "metadata": {}}
        mapping[f"n{number}"] = {"id": f"n{number}", "message": message, "parent": parent, "children": []}
        parent = f"n{number}"
    head = {"conversation_id": key, "title": title, "create_time": 1_650_000_000.5}
    return {**head, "mapping": mapping, "current_node": parent}


def packed(**files: Any) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.json", json.dumps(content))
    return held.getvalue()


def test_both_exports_are_read_as_they_are_shown() -> None:
    (truffles,) = read_export(json.dumps([webui(("user", "Where?"), ("assistant", "Under oaks."))]).encode()).chats
    assert [(words, answer) for words, answer, _ in truffles.exchanges] == [("Where?", "Under oaks.")]
    assert truffles.at is not None
    assert truffles.at.year == 2023
    code = {"content_type": "code", "text": "print(1)"}
    picture = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "what is it?"]}
    thoughts = {"content_type": "thoughts", "thoughts": []}
    said = [("user", picture), ("assistant", thoughts), ("assistant", "A pot."), ("user", "code?"), ("assistant", code)]
    export = read_export(packed(user={"id": "u"}, conversations=[chatgpt(*said), {"title": "empty", "mapping": {}}]))
    (soup,) = export.chats
    assert export.left_out == 1
    pairs = [(words, answer) for words, answer, _ in soup.exchanges]
    assert pairs == [("(a picture)\n\nwhat is it?", "A pot."), ("code?", "```\nprint(1)\n```")]


def test_plain_lists_and_odd_shapes_are_read_as_far_as_they_go() -> None:
    plain = {"chat": {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi\0\ud800"}]}]}}
    nodes = {"a": {"parent": "b", "message": None}, "b": {"parent": "a", "message": None}}
    circle = {"mapping": nodes, "current_node": "a"}
    export = read_export(json.dumps([plain, circle, 7, None, [], {"chat": 3}]).encode())
    assert [chat.exchanges[0][:2] for chat in export.chats] == [("hi?", "(not answered)")]
    assert export.left_out == 5


NONE = [b"", b"{", b"[1, 2", b"\xff\xfe", b"PK\x03\x04broken", b"[]", b"{}", b"[" * 200_000, b'"x"', packed(user={})]


@pytest.mark.parametrize("data", NONE, ids=[str(number) for number in range(len(NONE))])
def test_what_is_no_export_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(UserError):
        read_export(data)


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.services.chat.exported_chats.MEMBER_BYTES", 1_000)
    with pytest.raises(UserError, match="unpacked"):
        read_export(packed(conversations=["x" * 100_000]))


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


def oaks(count: int) -> bytes:
    each = [
        webui(("user", f"Where is {n}?"), ("assistant", f"At oak {n}."), key=f"w{n}", title=f"Oak {n}")
        for n in range(count)
    ]
    return json.dumps(each).encode()


async def test_chats_are_taken_over_once_and_taken_back(house: LivingHouse) -> None:
    imports, ada = house.cortex.chat_imports, house.admin
    await imports.read(ada, oaks(5))
    first = await imports.go_on(ada, for_s=0.0)
    assert (first.done, first.total) == (1, 5)
    assert (await imports.go_on(ada)).is_done
    await imports.read(ada, oaks(5))  # the same file once more
    assert (await imports.go_on(ada)).done == 5
    conversations = house.cortex.runtime.db.repository(ConversationsRepository, ada.id)
    listed = await conversations.list(limit=50)
    assert sorted(one.title for one in listed) == [f"Oak {n}" for n in range(5)]
    assert {(one.created_at.year, one.updated_at.year) for one in listed} == {(2023, 2023)}
    (titled, said) = await house.cortex.search.find(ada, "oak 3")
    assert [hit.title for hit in titled.hits] == [[("Oak", True), (" ", False), ("3", True)]]
    found = said.hits[0].path.split("/")[2]
    assert "At oak 3." in await house.cortex.conversations.export_markdown(ada, found)
    assert await imports.take_back(ada) == 5
    assert await conversations.list(limit=50) == []
    assert await imports.state(ada) is None
    with pytest.raises(NotFound):
        await imports.go_on(ada)
    assert await imports.state(house.member) is None


async def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        await house.cortex.chat_imports.read(house.admin, oaks(3))
        await house.cortex.chat_imports.go_on(house.admin, for_s=0.0)
    async with living_house(tmp_path / "home") as house:
        assert (await house.cortex.chat_imports.go_on(house.admin)).is_done
        conversations = house.cortex.runtime.db.repository(ConversationsRepository, house.admin.id)
        assert len(await conversations.list(limit=50)) == 3


async def test_hostile_words_in_an_imported_chat_move_nothing_unasked(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("go on", Use("file_write", {"path": "own.txt", "text": "x"}, is_blind=True), "So.")]
    async with living_house(tmp_path / "home") as house:
        form = {"name": "m", "provider": "openai", "model": "s", "base_url": scripted.base_url, "api_key": "test-key"}
        await house.cortex.models.save(house.admin, form)
        chats = [webui(("user", "x"), ("assistant", words), key=f"w{n}") for n, words in enumerate(HOSTILE)]
        await house.cortex.chat_imports.read(house.admin, json.dumps(chats).encode())
        await house.cortex.chat_imports.go_on(house.admin, for_s=60.0)
        conversations = house.cortex.runtime.db.repository(ConversationsRepository, house.admin.id)
        listed = await conversations.list(limit=50)
        assert len(listed) == len(HOSTILE) >= 20
        for one in listed:
            turn = await house.cortex.chat.send_message(house.admin, one.id, "go on")
            asked = await house.until(one.id, "approval", turn=turn, state="asked")
            await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "deny")
            await house.cortex.chat.stop(house.admin, one.id)  # an obedient model would only ask again
            await house.until(one.id, "turn.end", turn=turn)
        assert not list(house.cortex.homes.home_of(house.admin.id).path.rglob("own.txt"))
        turns = await house.cortex.runtime.db.repository(TurnsRepository, house.admin.id).list(listed[0].id)
        assert [turn.channel for turn in turns] == ["api", "chat"]
