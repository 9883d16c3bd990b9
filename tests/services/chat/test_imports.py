"""Chats that other programs exported: read, taken over, found again, taken back; and what they may do."""

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.services.chat.imports import FILE, FOLDER, ImportState
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import Reads, TurnsRepository
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


def kept(house: LivingHouse) -> list[dict[str, Any]]:
    """The chats that wait to be taken over."""
    path = house.cortex.homes.home_of(house.admin.id).path / FOLDER / FILE
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


async def read(house: LivingHouse, data: bytes) -> tuple[list[dict[str, Any]], ImportState]:
    await house.cortex.chat_imports.read(house.admin, io.BytesIO(data))
    state = await house.cortex.chat_imports.state(house.admin)
    assert state is not None
    return kept(house), state


def pairs(chat: dict[str, Any]) -> list[tuple[str, str]]:
    return [(words, answer) for words, answer, _ in chat["exchanges"]]


async def test_both_exports_are_read_as_they_are_shown(house: LivingHouse) -> None:
    data = json.dumps([webui(("user", "Where?"), ("assistant", "Under oaks."))]).encode()
    ((truffles,), state) = await read(house, data)
    assert pairs(truffles) == [("Where?", "Under oaks.")]
    assert truffles["at"].startswith("2023-")
    assert [reason[-2:] for reason in state.reasons] == ["1."]
    code = {"content_type": "code", "text": "print(1)"}
    picture = {"content_type": "multimodal_text", "parts": [{"asset_pointer": "x"}, "what is it?"]}
    thoughts = {"content_type": "thoughts", "thoughts": []}
    said = [("user", picture), ("assistant", thoughts), ("assistant", "A pot."), ("user", "code?"), ("assistant", code)]
    data = packed(user={"id": "u"}, conversations=[chatgpt(*said), {"title": "empty", "mapping": {}}])
    ((soup,), state) = await read(house, data)
    assert pairs(soup) == [("(a picture)\n\nwhat is it?", "A pot."), ("code?", "```\nprint(1)\n```")]
    assert [re.findall(r": (\d+)", reason) for reason in state.reasons] == [["1"], ["2"], ["1"]]
    assert "user.json" in state.reasons[0]


async def test_what_was_drawn_is_an_answer_and_what_was_thought_is_none(house: LivingHouse) -> None:
    drawn = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}]}
    chat = chatgpt(("user", "Draw it."), ("assistant", "hm"), ("tool", drawn))
    chat["mapping"]["n1"]["message"]["channel"] = "analysis"
    ((found,), _) = await read(house, json.dumps([chat]).encode())
    assert pairs(found) == [("Draw it.", "(a picture)")]
    chat = webui(("user", "Draw it."), ("assistant", ""), key="2")
    chat["chat"]["history"]["messages"]["m1"]["files"] = [{"type": "image", "url": "x"}]
    ((found,), _) = await read(house, json.dumps([chat]).encode())
    assert pairs(found) == [("Draw it.", "(a picture)")]


async def test_every_file_of_an_archive_is_read_whatever_it_is_called(house: LivingHouse) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/part one.json", json.dumps([webui(("user", "a"), key="1")]))
        archive.writestr("export/zwei", json.dumps([chatgpt(("user", "b"), key="2"), webui(("user", "a"), key="1")]))
        archive.writestr("export/lines.jsonl", "\n".join(json.dumps(webui(("user", n), key=n)) for n in "cd"))
        archive.writestr("export/wrapped.txt", json.dumps({"conversations": [webui(("user", "e"), key="5")]}))
        archive.writestr("export/joined.json", json.dumps([webui(("user", "h"), key="8")]) + "\n[")
        archive.writestr("export/two.json", "[]\n" + json.dumps([webui(("user", "i"), key="9")]))
        two = {"chats": [webui(("user", "j"), key="10")], "items": [webui(("user", "k"), key="11")]}
        archive.writestr("export/lists.json", json.dumps(two))
        archive.writestr("export/wide.json", json.dumps([webui(("user", "f"), key="6")]).encode("utf-16"))
        archive.writestr("export/cut.json", json.dumps([webui(("user", "g"), key="7"), "x" * 99])[:-20])
        archive.writestr("export/one.json", json.dumps(webui(("user", "l"), key="12"))[:-9])
        archive.writestr("export/inner.zip", packed(conversations=[]))
        archive.writestr("export/chat.html", "<html>")
        archive.writestr("export/photo.png", b"\x89PNG")
        archive.writestr("export/empty.json", "")
    found, state = await read(house, held.getvalue())
    assert sorted(chat["exchanges"][0][0] for chat in found) == [*"abcdefghijk"]
    assert state.files == 9
    assert [reason for reason in state.reasons if "Other versions" not in reason] == [
        "Messages of tools and systems, and reasoning: 1.",  # the hidden one
        "Chats that are in it twice: 1 (Truffles).",
        "Files that could be read only in part: 3 (joined.json, nothing past character 323, "
        "cut.json, nothing past character 322, one.json, nothing past character 1).",
        "Archives inside the archive: 1 (inner.zip).",
        "Files without chats: 3 (chat.html, photo.png, empty.json).",
    ]


async def test_plain_lists_and_odd_shapes_are_read_as_far_as_they_go(house: LivingHouse) -> None:
    plain = {"chat": {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi\0\ud800"}]}]}}
    nodes = {"a": {"parent": "b", "message": None}, "b": {"parent": "a", "message": None}}
    circle = {"mapping": nodes, "current_node": "a"}
    found, state = await read(house, json.dumps([plain, circle, 7, None, [], {"chat": 3}]).encode())
    assert [pairs(chat) for chat in found] == [[("hi?", "(not answered)")]]
    assert state.left_out == 5


async def test_one_odd_chat_costs_no_other(house: LivingHouse) -> None:
    odd = [chatgpt(("user", "a"), ("assistant", "b \ue200x\ue201"), key=f"{n}") for n in range(4)]
    odd[0]["current_node"] = ["n1"]
    odd[1]["create_time"] = 1e11
    reference = {"matched_text": "\ue200x\ue201", "alt": "[a](https://example.org/\0)"}
    odd[2]["mapping"]["n1"]["message"]["metadata"]["content_references"] = [reference]
    odd[3]["mapping"]["n1"]["message"]["content"]["parts"] = ['In \ue200entity\ue202["city","R\\u0000ome"]\ue201']
    loud = chatgpt(*[("user", "\1" * 100_000)] * 40, key="5")
    found, _ = await read(house, json.dumps([*odd, loud]).encode())
    assert [chat["key"] for chat in found] == ["0", "1", "2", "3", "5"]
    assert pairs(found[3]) == [("a", "In Rome")]


ANSWERS = {
    "reasoning": ("<think>hm\n```py\nx```</think>\n\nYes.", "Yes."),
    "reasoning that folds": (
        '<details type="reasoning" done="true"><summary>T</summary>\n> hm\n</details>\nYes.',
        "Yes.",
    ),
    "reasoning whose beginning was in the question": ("hm\n</think>\nYes.", "Yes."),
    "channels": ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.", "Yes."),
    "a source": ("Yes\u30104\u2020source\u3011. No \u301012:0\u2020a.pdf\u3011", "Yes. No"),
    "a private mark": ("Yes \ue200cite\ue202turn0search1\ue202turn0news2\ue201.", "Yes."),
    "a mark that lost its signs": ("Yes citeturn0search1turn0search12.", "Yes."),
    "a name": ('In \ue200entity\ue202["city","Rome","a city"]\ue201', "In Rome"),
    "a product": ('Buy \ue200product_entity\ue202["turn0product1","a pan"]\ue201 now.', "Buy a pan now."),
    "a text to be sent": (
        'Here:\n:::writing{variant="email" id="1"}\nDear Bo\n:::\nYes.\n:::note\nb\n:::',
        "Here:\nDear Bo\n\nYes.\n:::note\nb\n:::",
    ),
    "a link": ("See \ue200url\ue202the docs\ue202https://example.org\ue201", "See [the docs](https://example.org)"),
    "a tool's call": ('<tool_call>{"name": "x"}</tool_call>\nYes.', "Yes."),
    "a tool's call that folds": (
        '<details type="tool_calls" arguments="&quot;{}&quot;"><summary>T</summary></details>Yes.',
        "Yes.",
    ),
    "code that was run": (
        '<details type="code_interpreter"><summary>A</summary>\n```py\nx\n```\n</details>\nYes.',
        "```py\nx\n```\n\nYes.",
    ),
    "a file that is not there": ("[Get it](sandbox:/mnt/data/a.csv)", "Get it (a file that is not here)"),
    "code with blanks": ("```\na\n\n\n\n  b\n```\n", "```\na\n\n\n\n  b\n```\n"),
    "reasoning between words": ("One.\n\n<think>x</think>\n\nTwo.", "One.\n\nTwo."),
    "words with blanks": ("    indented\n\n\n\nfar\u2028below  ", "    indented\n\n\n\nfar\u2028below  "),
    "words about such marks": (
        "Write `<think>` or\n```\n<think>a</think>\n```\nthen \u3010a\u3011.",
        "Write `<think>` or\n```\n<think>a</think>\n```\nthen \u3010a\u3011.",
    ),
    "an own section": ("<details><summary>More</summary>x</details>", "<details><summary>More</summary>x</details>"),
}


@pytest.mark.parametrize("made", [webui, chatgpt], ids=["Open WebUI", "ChatGPT"])
async def test_what_other_products_write_for_themselves_is_taken_out(house: LivingHouse, made: Any) -> None:
    chats = [made(("user", said), ("assistant", said), key=f"k{n}") for n, (said, _) in enumerate(ANSWERS.values())]
    found, _ = await read(house, json.dumps(chats).encode())
    answers = dict(zip(ANSWERS, (pairs(chat)[0] for chat in found), strict=True))
    assert answers == {what: (said, shown) for what, (said, shown) in ANSWERS.items()}


async def test_marks_of_sources_become_the_links_that_were_shown(house: LivingHouse) -> None:
    mark = "\ue200cite\ue202turn0search1\ue201"
    chat = chatgpt(("user", "Who?"), ("assistant", f"They {mark}."))
    link = "([paper](https://example.org/a))"
    references = [{"matched_text": mark, "alt": link}, {"matched_text": "They", "alt": "x"}, 7]
    chat["mapping"]["n1"]["message"]["metadata"]["content_references"] = references
    ((found,), _) = await read(house, json.dumps([chat]).encode())
    assert pairs(found) == [("Who?", f"They {link}.")]


NONE = [b"", b"{", b"\xff\xfe", b"PK\x03\x04broken", b"[]", b"{}", b"[" * 200_000, b'"x"', packed(user={}), b"[1, 2"]


async def test_what_is_no_export_is_refused_in_words_and_what_waits_stays(house: LivingHouse) -> None:
    await house.cortex.chat_imports.read(house.admin, io.BytesIO(oaks(1)))
    for data in NONE:
        with pytest.raises(UserError):
            await house.cortex.chat_imports.read(house.admin, io.BytesIO(data))
    assert len(kept(house)) == 1
    assert [path.name for path in (house.cortex.homes.home_of(house.admin.id).path / FOLDER).iterdir()] == [FILE]


def oaks(count: int) -> bytes:
    each = [
        webui(("user", f"Where is {n}?"), ("assistant", f"At oak {n}."), key=f"w{n}", title=f"Oak {n}")
        for n in range(count)
    ]
    return json.dumps(each).encode()


async def test_chats_are_taken_over_once_and_taken_back(house: LivingHouse) -> None:
    imports, ada = house.cortex.chat_imports, house.admin
    await imports.read(ada, io.BytesIO(oaks(5)))
    first = await imports.go_on(ada, for_s=0.0)
    assert (first.done, first.total) == (1, 5)
    assert (await imports.go_on(ada)).is_done
    await imports.read(ada, io.BytesIO(oaks(5)))  # the same file once more
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
        await house.cortex.chat_imports.read(house.admin, io.BytesIO(oaks(3)))
        await house.cortex.chat_imports.go_on(house.admin, for_s=0.0)
    async with living_house(tmp_path / "home") as house:
        assert (await house.cortex.chat_imports.go_on(house.admin)).is_done
        conversations = house.rows(ConversationsRepository)
        assert len(await conversations.list(limit=50)) == 3


async def test_an_import_that_the_version_before_left_waiting_goes_on(house: LivingHouse) -> None:
    (chat,), _ = await read(house, oaks(1))
    at = "2023-11-14T22:13:20.500000+00:00"  # as it wrote moments
    waiting = {**chat, "at": at, "exchanges": [[words, answer, at] for words, answer, _ in chat["exchanges"]]}
    path = house.cortex.homes.home_of(house.admin.id).path / FOLDER / FILE
    path.write_text(f"{json.dumps(waiting)}\n", encoding="utf-8")
    assert (await house.cortex.chat_imports.go_on(house.admin)).is_done
    (taken,) = await house.rows(ConversationsRepository).list(limit=5)
    assert taken.created_at.isoformat() == at


async def test_hostile_words_in_an_imported_chat_move_nothing_unasked(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("go on", Use("file_write", {"path": "own.txt", "text": "x"}, is_blind=True), "So.")]
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        chats = [webui(("user", "x"), ("assistant", words), key=f"w{n}") for n, words in enumerate(HOSTILE)]
        await house.cortex.chat_imports.read(house.admin, io.BytesIO(json.dumps(chats).encode()))
        await house.cortex.chat_imports.go_on(house.admin, for_s=60.0)
        conversations = house.rows(ConversationsRepository)
        listed = await conversations.list(limit=50)
        assert len(listed) == len(HOSTILE) >= 20
        for one in listed:
            turn = await house.cortex.chat.send_message(house.admin, one.id, "go on")
            asked = await house.until(one.id, "approval", turn=turn, state="asked")
            await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "deny")
            await house.cortex.chat.stop(house.admin, one.id)  # an obedient model would only ask again
            await house.until(one.id, "turn.end", turn=turn)
        assert not list(house.cortex.homes.home_of(house.admin.id).path.rglob("own.txt"))
        turns = await house.rows(TurnsRepository).list(listed[0].id)
        assert [turn.channel for turn in turns] == ["api", "chat"]
        reads = await house.cortex.runtime.db.repository(TurnsRepository, house.admin.id).reads(turns[-1])
        assert reads == Reads(outside=True, private=True), "a chat is as private as a file that its person attaches"
