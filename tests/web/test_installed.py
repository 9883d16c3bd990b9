"""The page as an app: what a phone is told of it, the service worker's head, the page without a network."""

import html
import json
import re
import struct
from pathlib import Path
from typing import Literal

import httpx
import pytest

from cortex.app import Cortex
from tests.web.conftest import Browser
from web import icons
from web.app import STATIC
from web.render import Renderer


async def test_the_manifest_makes_the_page_installable(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get("/manifest.webmanifest")
    manifest = answer.json()
    assert answer.headers["content-type"] == "application/manifest+json"
    assert (manifest["id"], manifest["scope"], manifest["start_url"]) == ("/", "/", "/")
    assert manifest["display"] == "standalone"
    assert {icon["sizes"] for icon in manifest["icons"] if icon["purpose"] == "any"} >= {"192x192", "512x512"}
    assert "maskable" in {icon["purpose"] for icon in manifest["icons"]}
    assert [one["url"] for one in manifest["shortcuts"]] == ["/today", "/c/new", "/tasks"]


@pytest.mark.parametrize(
    ("shared", "draft"),
    [
        ({"title": "Ferries", "text": "", "url": "https://example.org/f"}, "Ferries\nhttps://example.org/f"),
        ({"title": "Ferries", "text": "Ferries at 9: https://example.org/f", "url": "https://example.org/f"}, ""),
        ({"title": "", "text": "just words", "url": ""}, "just words"),
        ({}, ""),
    ],
    ids=["a page", "a page within its text", "a text", "nothing but a file"],
)
async def test_what_a_phone_shares_waits_in_the_composer_of_a_new_chat(
    house: Cortex, ada: Browser, visitor: httpx.AsyncClient, shared: dict[str, str], draft: str
) -> None:
    target = (await visitor.get("/manifest.webmanifest")).json()["share_target"]
    assert (target["method"], target["enctype"]) == ("POST", "multipart/form-data")
    names, (files,) = target["params"], target["params"]["files"]
    assert {"image/*", ".pdf"} <= set(files["accept"])
    page = await ada.http.post(
        target["action"],
        data={names[name]: words for name, words in shared.items()},
        files={files["name"]: ("list.txt", b"milk and eggs", "text/plain")},
        headers={"Sec-Fetch-Site": "none"},
    )
    assert page.status_code == 200
    composer = page.text[page.text.index('id="composer"') :]
    assert 'action="/c/new/messages"' in page.text
    assert (draft or shared.get("text", "")) in html.unescape(composer)
    assert "list.txt" in composer
    assert re.search(r'name="attached" value="\w+"', composer)
    assert not await house.conversations.list(ada.user), "nothing was sent by itself"


async def test_a_page_of_another_site_cannot_share(ada: Browser) -> None:
    refused = await ada.http.post("/share", data={"text": "send it all"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403


async def test_what_is_no_file_that_is_taken_is_said_and_the_words_stay(ada: Browser) -> None:
    page = await ada.http.post(
        "/share", data={"text": "look at this"}, files={"files": ("a.bin", b"\x00\x01\x02", "application/x-thing")}
    )
    assert page.status_code == 422
    assert "a.bin" in page.text
    assert "look at this" in page.text


async def test_coming_back_to_what_was_shared_says_to_share_it_again(ada: Browser) -> None:
    answer = await ada.get("/share")
    assert answer.headers["location"] == "/c/new"
    assert "Share it once more" in (await ada.get("/c/new")).text


async def test_every_icon_of_the_manifest_is_there_in_its_size(visitor: httpx.AsyncClient) -> None:
    for icon in (await visitor.get("/manifest.webmanifest")).json()["icons"][1:]:
        answer = await visitor.get(icon["src"])
        width, height = struct.unpack(">II", answer.content[16:24])
        assert answer.headers["content-type"] == icon["type"] == "image/png"
        assert f"{width}x{height}" == icon["sizes"]


async def test_the_worker_belongs_to_the_whole_site_and_is_asked_for_anew(visitor: httpx.AsyncClient) -> None:
    answer = await visitor.get("/sw.js")
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "no-cache"
    assert "worker-src 'self'" in answer.headers["content-security-policy"]


async def test_the_worker_keeps_public_files_under_their_hash_and_nothing_else(visitor: httpx.AsyncClient) -> None:
    script = (await visitor.get("/sw.js")).text
    shell = json.loads(re.findall(r"^const SHELL = (.+);$", script, re.MULTILINE)[0])
    assert shell[0] == "/offline"
    for path in shell[1:]:
        assert re.fullmatch(r"/static/[\w./-]+\?v=[0-9a-f]{12}", path)
        assert "immutable" in (await visitor.get(path)).headers["cache-control"]


async def test_page_and_worker_are_of_one_version(ada: Browser) -> None:
    worker = re.findall(r'const VERSION = "(\w+)"', (await ada.get("/sw.js")).text)
    assert worker == re.findall(r'data-version="(\w+)"', (await ada.get("/tasks")).text)


def test_another_style_or_template_is_another_version(tmp_path: Path) -> None:
    def version(style: str, page: str) -> str:
        for folder, name, text in (("static", "app.css", style), ("templates", "page.html", page)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / name).write_text(text)
        return Renderer(tmp_path / "templates", tmp_path / "static").version

    assert len({version("a", "a"), version("b", "a"), version("a", "b")}) == 3
    assert version("a", "a") == version("a", "a")


async def test_the_page_without_a_network_is_nobodys(ada: Browser, visitor: httpx.AsyncClient) -> None:
    own = (await ada.get("/offline")).text
    assert "Ada" not in own
    assert 'id="side"' not in own
    assert own == (await visitor.get("/offline")).text
    assert "Nothing is lost" in own
    assert "What to do" in own


@pytest.mark.parametrize("name", [icon.name for icon in icons.ICONS])
def test_the_icons_are_made_with_the_bundle(name: str) -> None:
    assert (STATIC / "vendor" / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(
    ("ground", "ring_colour", "corner_alpha"),
    [("tile", icons.TEAL, 0), ("square", icons.TEAL, 255), ("none", None, 0)],
    ids=["tile", "square", "sign alone"],
)
def test_an_icon_shows_a_white_dot_beside_an_open_ring(
    ground: Literal["tile", "square", "none"], ring_colour: tuple[int, int, int] | None, corner_alpha: int
) -> None:
    icon = icons.Icon(name="", side_px=32, ground=ground)
    middle, top = icons._row(icon, 16), icons._row(icon, 0)
    assert middle[4 * 21 : 4 * 21 + 4] == b"\xff\xff\xff\xff"
    assert (tuple(middle[4 * 14 : 4 * 14 + 3]) if middle[4 * 14 + 3] else None) == ring_colour
    assert top[3] == corner_alpha
