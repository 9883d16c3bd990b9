"""The page of the files that a person gave, and the way in for new ones."""

import asyncio
import io
import re
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from PIL import Image
from starlette.types import Message

from cortex.app import Cortex
from cortex.ports.documents import Extracted, PageText
from cortex.storage.documents import DocumentsRepository
from cortex.storage.home import Homes
from tests.databases import copy_home, house_settings
from tests.patience import PATIENCE_S
from tests.web.conftest import Browser, Seed, browser
from tests.web.marks import marks
from tests.web.talks import Talks
from web.app import create_app

SCRIPT = {"HX-Request": "true"}


async def give(person: Browser, name: str, data: bytes = b"words") -> str:
    answer = await person.http.post("/files", files={"files": (name, data)}, headers=SCRIPT)
    assert answer.status_code == 200, answer.text
    return str(re.findall(r'name="attached" value="(\w+)"', answer.text)[0])


def below(home: Path) -> list[str]:
    """The files that uploads left in the folders of people."""
    found = (path.relative_to(home) for path in home.rglob("*") if path.is_file())
    return sorted("/".join(path.parts[1:]) for path in found if path.parts[1:2] in (("files",), ("incoming",)))


def kept(house: Cortex, person: Browser) -> list[str]:
    folder = Homes(house.settings.home).home_of(person.user.id).path
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


async def test_a_form_without_script_adds_several_and_says_which_were_not_taken(house: Cortex, ada: Browser) -> None:
    assert "No files yet" in (await ada.get("/files")).text
    both = [("files", ("Lease.txt", b"No pets.")), ("files", ("../notes.md", b"# Hi"))]
    assert (await ada.http.post("/files", files=both)).status_code == 303
    shown = (await ada.get("/files")).text
    assert "2 files are added." in shown
    assert re.findall(r'<a href="/files/\w+"[^>]*>([^<]+)', shown) == ["notes.md", "Lease.txt"]
    mixed = [("files", ("good.txt", b"words")), ("files", ("bad.zip", b"PK\3\4"))]
    refused = await ada.http.post("/files", files=mixed)
    assert refused.status_code == 422
    assert [line.partition(":")[0] for line in marks(refused).alerts] == ["bad.zip"]
    assert "good.txt" in refused.text
    cut = await ada.http.post("/files", files={"files": ("Lease.docx", b"PK\3\4" + b"\0" * 90)})
    assert ("Lease.docx" in marks(cut).alerts[0], "damaged" in marks(cut).alerts[0]) == (True, True)
    assert "Choose a file first." in (await ada.http.post("/files", files={"other": ("", b"")})).text


async def test_it_is_found_opened_deleted_and_brought_back(house: Cortex, ada: Browser) -> None:
    id = await give(ada, "Lease garden.txt", b"No pets.")
    await give(ada, "other.txt")
    found = (await ada.get("/files?q=garden+lea")).text
    assert (id in found, "other.txt" in found) == (True, False)
    assert "No file has" in (await ada.get("/files?q=boat")).text
    content = await ada.get(f"/files/{id}/content")
    assert content.text == "No pets."
    assert content.headers["content-disposition"].startswith("attachment")
    assert content.headers["x-content-type-options"] == "nosniff"
    assert content.headers["content-security-policy"].startswith("default-src 'none'; sandbox;")
    gone = await ada.post(f"/files/{id}/delete")
    assert gone.status_code == 303
    news = (await ada.get("/files")).text
    assert f'action="/files/{id}/restore"' in news
    assert [(await ada.get(f"/files/{id}{rest}")).status_code for rest in ("", "/content")] == [410, 404]
    for page in (await ada.get(f"/files/{id}"), await ada.fragment(f"/files/{id}")):
        assert f"/files/{id}/restore" in marks(page).forms
    back = await ada.post(f"/files/{id}/restore", back=f"/files/{id}")
    assert back.headers["location"] == f"/files/{id}"
    assert (await ada.get(f"/files/{id}/content")).text == "No pets."


async def test_a_search_in_texts_says_when_it_lists_the_best_places_alone(
    page: httpx.AsyncClient, talks: Talks
) -> None:
    cortex, owner = talks.living.cortex, talks.living.admin.id
    for count, is_cut in ((6, False), (1, True)):
        for number in range(count):
            file = (f"{count}-{number}.txt", b"Quinces are ripe.")
            assert (await page.post("/files", files={"files": file}, headers=SCRIPT)).status_code == 200
        assert await cortex.document_reading.settled(owner, PATIENCE_S) == 0
        found = (await page.get("/files?q=quinces")).text
        assert found.count('<small class="hit-at">') == 6
        assert ("Only the best places are listed" in found) == is_cut


async def test_what_was_deleted_can_be_restored_long_after_the_message_is_gone(ada: Browser, bob: Browser) -> None:
    id, stays = await give(ada, "Lease.txt", b"x" * 2_000), await give(ada, "other.txt", b"x" * 1_000)
    assert f"/files/{id}/restore" not in marks(await ada.get("/files")).forms
    await ada.post(f"/files/{id}/delete")
    await ada.get("/files")  # the message with Undo is shown once
    shown = (await ada.get("/files")).text
    assert "last day (1)" in " ".join(re.sub(r"<svg.*?</svg>", "", shown).split())
    assert (f'action="/files/{id}/restore"' in shown, f'action="/files/{stays}/restore"' in shown) == (True, False)
    assert ("3.0 kB of 1 GB" in shown, "2.0 kB of it" in shown) == (True, True)
    assert (await bob.get(f"/files/{id}")).status_code == 404
    assert f"/files/{id}" not in (await bob.get("/files")).text
    away = await ada.post(f"/files/{id}/restore", back="//elsewhere.example")
    assert away.headers["location"] == "/files"
    assert f"/files/{id}/restore" not in marks(await ada.get("/files")).forms


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"),
        ("page.html", b"<!doctype html><script>alert(1)</script>"),
        ("both.pdf", b"%PDF-1.4\n<script>alert(1)</script>"),
    ],
)
async def test_nothing_in_a_file_is_shown_as_a_part_of_the_page(ada: Browser, name: str, data: bytes) -> None:
    id = await give(ada, name, data)
    content = await ada.get(f"/files/{id}/content")
    assert content.headers["content-type"] in ("text/plain; charset=utf-8", "application/pdf")
    assert content.headers["content-disposition"].startswith("attachment")
    for page in (f"/files/{id}", "/files"):
        assert "<script>alert" not in (await ada.get(page)).text


async def test_two_peoples_files_never_meet(house: Cortex, ada: Browser, bob: Browser) -> None:
    id = await give(ada, "Lease.txt")
    for path in (f"/files/{id}", f"/files/{id}/content"):
        assert (await bob.get(path)).status_code == 404
    for path in (f"/files/{id}/delete", f"/files/{id}/restore"):
        assert (await bob.post(path)).status_code == 404
    for path in ("/files", "/files?q=lease", "/search?q=lease"):
        assert "Lease.txt" not in (await bob.get(path)).text
    draft = {"cid": "", "text": "hi", "attached": id}
    shown = await bob.http.post("/files", data=draft, files={"files": ("b.txt", b"words")})
    assert ("b.txt" in shown.text, "Lease.txt" in shown.text, id in shown.text) == (True, False, False)
    sent = await bob.post("/c/new/messages", text="hi", attached=id)
    assert (sent.status_code, "Lease.txt" in sent.text) == (404, False)
    await give(bob, "Lease.txt", b"Bob's")
    assert (await ada.get(f"/files/{id}/content")).text == "words"
    assert kept(house, bob) == ["files/uploads/Lease.txt", "files/uploads/b.txt"]


async def test_an_admin_sees_nothing_of_a_members_files(ada: Browser, bob: Browser) -> None:
    id, picture = await give(bob, "Lease.txt"), await give(bob, "photo.png", photo())
    for path in (
        f"/files/{id}",
        f"/files/{id}/content",
        f"/files/{picture}/picture",
        f"/files/{picture}/picture?small=1",
    ):
        assert (await ada.get(path)).status_code == 404
    for path in (f"/files/{id}/delete", f"/files/{id}/restore"):
        assert (await ada.post(path)).status_code == 404
    for path in ("/files", "/search?q=lease", "/admin", "/admin/users", "/admin/audit", "/usage"):
        assert "Lease.txt" not in (await ada.get(path)).text


async def test_a_name_with_tricks_is_only_a_name(ada: Browser) -> None:
    names = {
        "../../../etc/passwd.txt": "passwd.txt",
        "..\\..\\boot.txt": "boot.txt",
        "gpj\u202etxt.exe.txt": "gpjtxt.exe.txt",
        "CON.txt": "_CON.txt",
        "-rf *.txt": "-rf _.txt",
        "<img src=x onerror=alert(1)>.txt": "_img src=x onerror=alert(1)_.txt",
        "a" * 300 + ".txt": "a" * 116 + ".txt",
        "..": "file",
        ".htaccess": "htaccess",
        "{{7*7}}.txt": "{{7_7}}.txt",
        "a\u2028b.txt": "a b.txt",
    }
    for given, kept_as in names.items():
        content = await ada.get(f"/files/{await give(ada, given)}/content")
        assert content.headers["content-disposition"] == f"attachment; filename*=utf-8''{quote(kept_as, safe='')}"
    shown = (await ada.get("/files")).text
    assert ("49" in re.findall(r"<a href=.*?\.txt", shown), "<img src=x" in shown) == (False, False)


async def test_of_ten_uploads_at_once_as_many_are_kept_as_fit(tmp_path: Path, seed: Seed) -> None:
    copy_home(seed.home, tmp_path / "small")
    settings = house_settings(tmp_path / "small", upload_mb=1, files_mb=2)
    async with Cortex.at_rest(settings) as house, browser(create_app(house), seed.tokens["Ada"]) as http:
        send = partial(http.post, "/files", files={"files": ("a.txt", b"x" * 600_000)}, headers=SCRIPT)
        answers = await asyncio.gather(*(send() for _ in range(10)))
        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [422] * 7
        assert [path.rpartition("/")[0] for path in below(tmp_path / "small")] == ["files/uploads"] * 3
        id = re.findall(
            r'name="attached" value="(\w+)"', next(each.text for each in answers if each.status_code == 200)
        )[0]
        await http.post(f"/files/{id}/delete")
        full = await send()
        assert (full.status_code, "deleted files" in full.text) == (422, True)  # so that it can always come back
        assert (await http.post(f"/files/{id}/restore")).status_code == 303
        assert (await http.get(f"/files/{id}/content")).status_code == 200


async def test_a_long_text_is_shown_in_stretches(house: Cortex, ada: Browser) -> None:
    id = await give(ada, "long.txt")
    pages = tuple(PageText(number=number, text=f"text {number}." + "x" * 900) for number in range(1, 252))
    rows = house.runtime.db.repository(DocumentsRepository, ada.user.id)
    await rows.keep_text(id, Extracted(pages=pages, is_paged=True))
    shown = {
        page: re.findall(r'id="page-(\d+)"|\?page=(\d+)', (await ada.get(f"/files/{id}?page={page}")).text)
        for page in (1, 101, 250, 9_999)
    }
    for page, (first, last, *links) in {
        1: (1, 100, 101),
        101: (101, 200, 1, 201),
        250: (250, 251, 150),
        9_999: (251, 251, 151),
    }.items():
        numbers = [int(number) for number, _ in shown[page] if number]
        assert (numbers[0], numbers[-1], [int(link) for _, link in shown[page] if link]) == (first, last, links)
    await rows.keep_text(id, Extracted(pages=(PageText(number=1, text="x" * 3_000_000),)))
    assert len((await ada.get(f"/files/{id}")).text) < 300_000


async def test_an_upload_that_is_cut_at_any_tenth_leaves_nothing(house: Cortex, ada: Browser, app: FastAPI) -> None:
    body = b'--cut\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n' + b"x" * 3_000_000
    body += b"\r\n--cut--\r\n"
    request = ada.http.build_request(
        "POST", "/files", content=body, headers={"Content-Type": "multipart/form-data; boundary=cut"}
    )
    headers = [(name.lower(), value) for name, value in request.headers.raw]
    scope = {"type": "http", "method": "POST", "path": "/files", "raw_path": b"/files", "query_string": b""}
    scope |= {"headers": headers, "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 1)}

    async def unheard(_: Message) -> None:
        """Nobody is there any more."""

    for tenth in range(10):
        pieces: list[Message] = [
            {"type": "http.request", "body": body[: len(body) * tenth // 10], "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive(pieces: list[Message] = pieces) -> Message:
            return pieces.pop(0) if len(pieces) > 1 else pieces[0]

        await app({**scope, "state": {}}, receive, unheard)
    assert kept(house, ada) == []
    assert "No files yet" in (await ada.get("/files")).text


async def test_who_is_not_logged_in_leaves_nothing(house: Cortex, visitor: httpx.AsyncClient) -> None:
    answer = await visitor.post("/files", files={"files": ("a.txt", b"x" * 3_000_000)})
    assert answer.status_code in (303, 401)


async def test_limits_of_a_file_of_a_form_and_of_a_person(tmp_path: Path, seed: Seed) -> None:
    copy_home(seed.home, tmp_path / "small")
    settings = house_settings(tmp_path / "small", upload_mb=1, files_mb=2)
    async with Cortex.at_rest(settings) as house, browser(create_app(house), seed.tokens["Ada"]) as http:

        async def answer(size: int, place: str = "/files") -> httpx.Response:
            return await http.post(place, files={"files": ("a.txt", b"x" * size)}, headers=SCRIPT)

        over = await answer(1_000_001)
        assert (over.status_code, "1 MB" in over.text) == (422, True)
        assert (await answer(8_000_000)).status_code == 413
        assert [(await answer(900_000)).status_code for _ in range(3)] == [200, 200, 422]
        assert "2 MB" in (await answer(900_000)).text
        assert (await answer(3_000_000, "/notes")).status_code == 413


def photo() -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (400, 200), "teal").save(data, "PNG")
    return data.getvalue()


async def test_a_picture_is_shown_encoded_anew_and_to_its_person_alone(ada: Browser, bob: Browser) -> None:
    id, text = await give(ada, "photo.png", photo()), await give(ada, "a.txt")
    for query in ("", "?small=1"):
        shown = await ada.get(f"/files/{id}/picture{query}")
        assert shown.headers["content-type"] in ("image/png", "image/webp")
        assert "sandbox" in shown.headers["content-security-policy"]
        assert Image.open(io.BytesIO(shown.content)).size[0] <= 400
        assert (await bob.get(f"/files/{id}/picture{query}")).status_code == 404
    assert (await ada.get(f"/files/{text}/picture")).status_code == 404
    card = (await ada.fragment(f"/files/{id}")).text
    assert (f'src="/files/{id}/picture"' in card, "confirm-h" in card, "<html" in card) == (True, True, False)


async def test_what_of_a_file_was_not_read_stands_on_its_cards(page: httpx.AsyncClient, talks: Talks) -> None:
    given = {"cid": "", "text": "hi", "role": "orchestrator"}
    made = await page.post("/files", data=given, files={"files": ("mail.eml", b"Subject: x\n\nwords")})
    (id,) = re.findall(r'name="attached" value="(\w+)"', made.text)
    sent = await page.post("/c/new/messages", data={"text": "what is this?", "attached": id})
    here = sent.headers["location"]
    assert "parts read" not in (await page.get(here)).text
    cortex, owner = talks.living.cortex, talks.living.admin.id
    assert await cortex.document_reading.settled(owner, PATIENCE_S) == 0  # else the reader writes over what follows
    found = Extracted(pages=(PageText(number=1, text="words"),), note="2 of 3 parts read. Not read: <bill>.pdf.")
    await cortex.runtime.db.repository(DocumentsRepository, owner).keep_text(id, found)
    for place in (here, "/files", f"/files/{id}"):
        shown = (await page.get(place)).text
        assert ("2 of 3" in shown, "&lt;bill&gt;.pdf" in shown, "<bill>" in shown) == (True, True, False), place


async def test_without_a_script_a_file_is_attached_dropped_and_sent_with_the_draft(page: httpx.AsyncClient) -> None:
    given = {"cid": "", "text": "what is this?", "role": "orchestrator"}
    made = await page.post("/files", data=given, files={"files": ("photo.png", photo())})
    (id,) = re.findall(r'name="attached" value="(\w+)"', made.text)
    assert (made.status_code, marks(made).values["text"]) == (200, "what is this?")
    both = await page.post("/files", data={**given, "attached": id}, files={"files": ("a.txt", b"words")})
    first, second = re.findall(r'name="attached" value="(\w+)"', both.text)
    form = {**given, "attached": [first, second], "drop": second}
    dropped = await page.post("/files", data=form, files={"files": ("", b"")})
    assert re.findall(r'name="attached" value="(\w+)"', dropped.text) == [id]
    refused = await page.post("/files", data={**given, "attached": id}, files={"files": ("b.zip", b"PK\3\4")})
    assert ("b.zip" in marks(refused).alerts[0], f'value="{id}"' in refused.text) == (True, True)
    chosen = await page.post("/c/new/messages", data={"text": "hi", "files": "photo.png", "attached": id})
    assert ("Press Attach first" in chosen.text, f'value="{id}"' in chosen.text) == (True, True)
    sent = await page.post("/c/new/messages", data={"text": "", "attached": id})
    assert sent.status_code == 303
    shown = (await page.get(sent.headers["location"])).text
    log = shown.partition('id="log"')[2].partition("<template")[0]
    assert (f'href="/files/{id}" data-confirm' in log, 'class="said"' in log) == (True, False)
    here = sent.headers["location"]
    await page.post(f"/files/{id}/delete")
    lost = (await page.get(here)).text
    assert (f'src="/files/{id}' in lost, f'href="/files/{id}"' in lost, ">deleted</span>" in lost) == (
        False,
        False,
        True,
    )
    back = re.findall(rf'action="/files/{id}/restore">.*?name="(back)" value="([^"]+)"', lost, re.S)
    assert back == [("back", here)]
    assert (await page.post(f"/files/{id}/restore", data=dict(back))).headers["location"] == here
    assert f'src="/files/{id}/picture?small=1"' in (await page.get(here)).text


async def test_a_file_for_the_composer_is_a_card_or_a_sentence(ada: Browser) -> None:
    card = await ada.http.post("/files", files={"files": ("a.txt", b"words")}, headers=SCRIPT)
    assert re.findall(r'name="attached" value="(\w+)"', card.text)
    refused = await ada.http.post("/files", files={"files": ("a.zip", b"PK\3\4")}, headers=SCRIPT)
    assert (refused.status_code, refused.text.startswith("a.zip: ")) == (422, True)
