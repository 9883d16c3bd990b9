"""Files that go with a message: pictures on both wires, texts behind the words, the same bytes in every later turn."""

import base64
import io
from typing import Any

import pytest
from PIL import Image

from cortex.base.errors import NotFound, UserError
from cortex.base.user import User
from cortex.ports.documents import Extracted, PageText
from cortex.services.turns.planning import DraftSettings
from cortex.storage.documents import DocumentsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import TurnsRepository
from tests.integrations.documents.hostile import ACT
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule


def photo(*, color: str = "teal", size: tuple[int, int] = (2_000, 1_000)) -> bytes:
    """A JPEG as a phone writes it: with its maker and its place."""
    exif = Image.Exif()
    exif[0x010F] = "PhoneMaker"
    exif[0x8825] = {1: "N", 2: (48.0, 18.0, 0.0)}
    data = io.BytesIO()
    Image.new("RGB", size, color).save(data, "JPEG", exif=exif)
    return data.getvalue()


async def give(house: LivingHouse, name: str, data: bytes) -> str:
    return (await house.cortex.documents.give(house.admin, name, io.BytesIO(data), len(data))).id


async def read(house: LivingHouse, id: str, text: str, *, pages: int = 1) -> None:
    """Keep this as its text, once the reader of documents has ended with what it really holds."""
    await house.cortex.document_reading.settled(house.admin.id, PATIENCE_S)
    found = Extracted(pages=tuple(PageText(number=at + 1, text=text) for at in range(pages)), outline=("Pets",))
    await house.rows(DocumentsRepository).keep_text(id, found)


async def connect(house: LivingHouse, server: ScriptedServer, kind: str, **more: Any) -> None:
    base_url = server.base_url if kind == "openai" else server.origin
    form = {"name": "scripted", "provider": kind, "model": "scripted-1", "base_url": base_url}
    cache = {"caches": True, "minimum_tokens": 1, "read_factor": 0.1, "late_tools": "bridge"}
    await house.cortex.models.save(house.admin, {**form, "api_key": server.api_key, "cache": cache, **more})


def parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for each in body["messages"] if isinstance(each["content"], list) for part in each["content"]]


def pictures(body: dict[str, Any]) -> list[bytes]:
    """The pictures of a request, on either wire."""
    found = [part["source"]["data"] for part in parts(body) if part["type"] == "image"]
    found += [part["image_url"]["url"].partition(",")[2] for part in parts(body) if part["type"] == "image_url"]
    return [base64.b64decode(one) for one in found]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_picture_goes_out_small_without_its_place_and_the_prefix_stays_whole(
    house: LivingHouse, kind: str
) -> None:
    with ScriptedServer(rule("what", "A teal field."), rule("sure", "Yes."), cache_minimum_tokens=1) as server:
        await connect(house, server, kind, sees=True)
        cid = await house.conversation()
        id = await give(house, "photo.jpg", photo())
        turn = await house.say(cid, "what is this?", mode="chat", attached=[id])
        await house.say(cid, "are you sure?", mode="chat")
        assert (server.problems, server.cache_breaks()) == ([], [])
        first, second = (pictures(seen.body) for seen in server.log)
        assert (len(first), first) == (1, second)
        shown = Image.open(io.BytesIO(first[0]))
        assert (shown.size, dict(shown.getexif()), b"PhoneMaker" in first[0]) == ((1_568, 784), {}, False)
    rows = await house.rows(MessagesRepository).of_turn(turn)
    assert (rows[0].message.said, rows[0].message.pictures[0].document) == ("what is this?", id)
    assert rows[0].is_tainted


async def test_a_model_that_does_not_see_is_told_of_the_picture(house: LivingHouse) -> None:
    with ScriptedServer(rule("", "I cannot see it.")) as server:
        await connect(house, server, "openai", sees=False)
        cid = await house.conversation()
        await house.say(cid, "", mode="chat", attached=[await give(house, "photo.jpg", photo())])
        assert (server.problems, pictures(server.log[0].body)) == ([], [])
        assert "photo.jpg · picture." in str(server.log[0].body)


@pytest.mark.parametrize(
    ("says", "learns"),
    [
        ("this model does not support image input (ref: b8bd630e)", True),
        ("messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes", False),
    ],
    ids=["no pictures", "not this one"],
)
@pytest.mark.moves_cache_prefix(reason="a picture becomes a line")
async def test_pictures_that_are_refused_are_lines_in_the_same_turn(
    house: LivingHouse, says: str, learns: bool
) -> None:
    with ScriptedServer(rule("", "I cannot see it.")) as server:
        await connect(house, server, "anthropic", sees=True)
        server.refuses = lambda body: (
            (400, {"type": "error", "error": {"type": "invalid_request_error", "message": says}})
            if pictures(body)
            else None
        )
        cid = await house.conversation()
        turn = await house.say(cid, "what is this?", mode="chat", attached=[await give(house, "photo.jpg", photo())])
        assert (await house.rows(TurnsRepository).get(turn)).state == "done"
        assert [seen.status for seen in server.log] == [400, 200]
        assert "photo.jpg · picture." in str(server.log[1].body)
        await house.say(cid, "and now?", mode="chat")
        assert [seen.status for seen in server.log[2:]] == ([200] if learns else [400, 200])
        assert (await house.cortex.models.entry(house.admin, "scripted")).takes_pictures != learns


async def test_a_picture_that_is_gone_for_good_is_a_line(house: LivingHouse) -> None:
    with ScriptedServer(rule("", "Fine.")) as server:
        await connect(house, server, "openai", sees=True)
        cid = await house.conversation()
        id = await give(house, "photo.jpg", photo())
        await house.say(cid, "keep it", mode="chat", attached=[id])
        for path in (house.cortex.settings.home / house.admin.id / "pictures").iterdir():
            path.unlink()
        await house.say(cid, "again", mode="chat")
        await house.cortex.documents.delete(house.admin, id)
        for path in (house.cortex.settings.home / house.admin.id / "pictures").iterdir():
            path.unlink()
        await house.say(cid, "and again", mode="chat")
        first, second, third = (seen.body for seen in server.log)
        assert pictures(first) == pictures(second)
        assert (pictures(third), "It was deleted." in str(third)) == ([], True)


async def test_a_short_text_goes_whole_and_a_long_one_begins(house: LivingHouse) -> None:
    with ScriptedServer(rule("", "Read.")) as server:
        await connect(house, server, "openai")
        cid = await house.conversation()
        short, long = await give(house, "a.txt", b"..."), await give(house, "lease.pdf", b"%PDF-1.7")
        await read(house, short, "No pets.")
        await read(house, long, "word " * 1_000, pages=3)
        turn = await house.say(cid, "read them", attached=[short, long])
        sent = str(server.log[0].body["messages"])
        await house.say(cid, "thanks", mode="chat")
        without = str(server.log[1].body["messages"])
    assert all(part in sent for part in ("[Attached file: a.txt", "uploads/a.txt] [from outside]"))
    assert "No pets." in sent
    assert "lease.pdf · PDF" in sent
    assert "8,000 of 15,004" in sent
    assert "- Pets" in sent
    assert "file_read (uploads/lease.pdf)" in sent
    assert ("- Pets" in without, "file_read" in without) == (True, False), "where no tool is there, none is named"
    row = await house.rows(TurnsRepository).get(turn)
    assert (row.has_read_outside, row.is_tainted, [file.name for file in row.attachments]) == (
        True,
        False,
        ["a.txt", "lease.pdf"],
    )


@pytest.mark.parametrize("way", ["attached", "searched", "read", "named"])
async def test_a_file_that_tells_the_model_to_act_gets_nothing_done_unasked(house: LivingHouse, way: str) -> None:
    """The model obeys it; the person is asked, and nothing was written before."""
    write = Use("file_write", {"path": "notes.md", "text": "obeyed"}, is_blind=True)
    steps = {
        "searched": (Use("file_search", {"query": "instructions"}, is_blind=True),),
        "read": (Use("file_read", {"path": "uploads/letter.txt"}, is_blind=True),),
        "named": (Use("file_list", {"path": "uploads"}, is_blind=True),),
    }
    with ScriptedServer(rule("letter", *steps.get(way, ()), write, "Done.")) as server:
        await connect(house, server, "openai")
        cid = await house.conversation()
        is_name = way == "named"
        id = await give(house, f"{ACT} letter.txt" if is_name else "letter.txt", b"-" if is_name else ACT.encode())
        await read(house, id, "-" if is_name else ACT)
        attached = [id] if way == "attached" else []
        turn = await house.cortex.chat.send_message(house.admin, cid, "what does the letter say", attached=attached)
        asked = await house.until(cid, "approval", turn=turn, state="asked")
        written = house.cortex.settings.home / house.admin.id / "files/notes.md"
        assert (asked.payload["tool"], written.exists()) == ("file_write", False)
        await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "deny")
        await house.until(cid, "turn.end", turn=turn)
        assert (written.exists(), ACT in str(server.log[-1].body["messages"])) == (False, True)


async def test_tools_that_read_on_go_with_a_long_text(house: LivingHouse) -> None:
    with ScriptedServer(rule("", "Read.")) as server:
        await connect(house, server, "openai")
        cid = await house.conversation()
        id = await give(house, "lease.pdf", b"%PDF-1.7")
        await read(house, id, "word " * 4_000)
        await house.say(cid, "", attached=[id])
        assert {"file_read", "file_search"} <= {*server.log[0].tools}


async def test_the_price_before_sending_counts_files_and_the_chosen_model(house: LivingHouse) -> None:
    with ScriptedServer(rule("", "Read.")) as server:
        await connect(house, server, "openai", sees=False)
        await connect(house, server, "openai", name="seeing", sees=True)
        cid = await house.conversation()
        picture, lease = await give(house, "photo.jpg", photo()), await give(house, "lease.pdf", b"%PDF-1.7")
        await read(house, lease, "word " * 4_000)

        async def price(*ids: str, model: str = "scripted", user: User | None = None) -> tuple[int, set[str]]:
            where = None if user else cid
            composed = DraftSettings(model=model, attached=ids)
            receipt = await house.cortex.planning.preview(
                user or house.admin, where, "look", "auto", role="orchestrator", composed=composed
            )
            return receipt["attached_tokens"], {item["name"] for item in receipt["sent"]}

        assert (await price())[0] == (await price(lease, user=house.member))[0] == 0
        assert (await price(picture))[0] == 0
        assert (await price(picture, model="seeing"))[0] == 1_640
        tokens, sent = await price(lease)
        assert 2_000 <= tokens <= 2_300
        assert {"file_read", "file_search"} <= sent
        await house.say(cid, "look", attached=[lease])
        assert sent <= {*server.log[0].tools}


async def test_a_new_try_a_branch_and_exports_keep_what_was_attached(house: LivingHouse) -> None:
    cid = await house.conversation()
    id = await give(house, "photo.jpg", photo())
    turn = await house.say(cid, "look", mode="chat", attached=[id])
    again = await house.cortex.chat.again(house.admin, turn)
    await house.until(cid, "turn.end", turn=again)
    edited = await house.cortex.chat.edit(house.admin, again, "look closely")
    await house.until(cid, "turn.end", turn=edited)
    branch = await house.cortex.conversations.branch(house.admin, cid, edited)
    turns = house.rows(TurnsRepository)
    for where in (cid, branch):
        (row,) = await turns.list(where)
        assert [file.id for file in row.attachments] == [id]
        assert "photo.jpg (JPEG)" in await house.cortex.conversations.export_markdown(house.admin, where)
        assert '"photo.jpg"' in await house.cortex.conversations.export_json(house.admin, where)
    said = (await house.events(cid, "message"))[-1].payload
    assert said["attachments"][0]["name"] == "photo.jpg"


async def test_the_offline_model_says_what_it_got(house: LivingHouse) -> None:
    cid = await house.conversation()
    text = await give(house, "a.txt", b"...")
    await read(house, text, "No pets.")
    turn = await house.say(cid, "", mode="chat", attached=[await give(house, "photo.jpg", photo()), text])
    rows = await house.rows(MessagesRepository).of_turn(turn)
    assert rows[-1].message.text.startswith("I got photo.jpg, a.txt")
    assert (await house.cortex.conversations.get(house.admin, cid)).title == ""


async def test_the_files_of_another_cannot_be_attached(house: LivingHouse) -> None:
    id = await give(house, "photo.jpg", photo())
    cid = await house.conversation(house.member)
    with pytest.raises(NotFound):
        await house.cortex.chat.send_message(house.member, cid, "look", attached=[id])
    with pytest.raises(UserError):
        await house.cortex.chat.send_message(house.member, cid, "")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "damaged"),
        (photo()[:900], "damaged"),
        (photo(size=(9_000, 9_000)), "million"),
    ],
    ids=["no picture", "cut", "too large"],
)
async def test_a_picture_that_cannot_be_read_is_not_kept(house: LivingHouse, data: bytes, why: str) -> None:
    with pytest.raises(UserError, match=why):
        await give(house, "photo.jpg", data)
    assert await house.cortex.documents.list(house.admin) == []
