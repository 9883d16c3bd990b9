"""A slip in a file of a home never closes a page: each opens, and the ones where it is mended say what is wrong."""

from pathlib import Path

import pytest

from cortex.app import Cortex
from tests.web.conftest import Browser
from tests.web.test_routes import ANY, OF_THE_HOUSE, routes

BAD_UTF8 = b"\xff\xfe\x00 no text"
ROLE, MODELS = "roles/orchestrator.md", "model_registry.json"
SLIPS: dict[str, tuple[str, bytes | None, str]] = {  # None: a folder stands in its place
    "an open front matter": (ROLE, b"---\nmode: auto\n", "roles/orchestrator.md"),
    "an unknown key": (ROLE, b"---\ntoolz: [web]\n---\n", "unknown key 'toolz'"),
    "a wrong type": (ROLE, b"---\nmax_rounds: many\n---\n", "'max_rounds' must be a whole number"),
    "an unknown tool mode": (ROLE, b"---\nmode: sometimes\n---\n", "'mode' must be one of"),
    "a role that is no text": (ROLE, BAD_UTF8, "roles/orchestrator.md"),
    "a folder for a role": (ROLE, None, "roles/orchestrator.md"),
    "no JSON": (MODELS, b"{models", "model_registry.json can't be read"),
    "a JSON list": (MODELS, b"[1]", "model_registry.json can't be read"),
    "a wrong value": (MODELS, b'{"models": [{"name": "m", "provider": "carrier pigeon", "model": "x"}]}', "provider"),
    "models that are no text": (MODELS, BAD_UTF8, "model_registry.json"),
    "a folder for the models": (MODELS, None, "model_registry.json"),
}
SAID_ON = {
    ROLE: ("/c/new", "/account", "/account/roles/orchestrator", "/admin/roles", "/admin/roles/orchestrator", "/health"),
    MODELS: ("/c/new", "/models", "/account", "/account/roles/coder", "/admin/roles", "/admin/roles/coder", "/health"),
}


def spoil(home: Path, user_id: str, path: str, content: bytes | None) -> None:
    """Put a file with a slip, or a folder, where Cortex looks for a file."""
    place = home / user_id / path
    place.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        place.mkdir()
    else:
        place.write_bytes(content)


@pytest.fixture(params=list(SLIPS.values()), ids=list(SLIPS))
def slip(request: pytest.FixtureRequest, house: Cortex, ada: Browser) -> tuple[str, str]:
    path, content, told = request.param
    spoil(house.runtime.settings.home, ada.user.id, path, content)
    return path, told


def pages(conversation: str) -> list[str]:
    """The address of every page that needs no id of its own, of a conversation and of a role."""
    ids = {
        **ANY,
        **OF_THE_HOUSE,
        "file_id": "x",
        "guide": "today",
        "cid": conversation,
        "role": "orchestrator",
        "model": "offline",
        "rest": "x",
    }
    gets = [path for method, path in routes() if method == "GET" and not path.endswith(("/events", "{path:path}"))]
    return [path.replace(":path}", "}").format(**ids) for path in gets]


async def test_the_pages_where_it_is_mended_open_and_say_it(house: Cortex, ada: Browser, slip: tuple[str, str]) -> None:
    path, told = slip
    conversation = await house.conversations.new(ada.user, role="orchestrator")
    opened = {at: await ada.get(at) for at in (*SAID_ON[path], f"/c/{conversation.id}")}
    assert {at: answer.status_code for at, answer in opened.items()} == dict.fromkeys(opened, 200)
    silent = [at for at, answer in opened.items() if told.replace("'", "&#39;") not in answer.text]
    assert silent == []


@pytest.mark.parametrize("slip", [SLIPS["an unknown key"], SLIPS["no JSON"]], ids=[ROLE, MODELS], indirect=True)
async def test_no_page_at_all_breaks(house: Cortex, ada: Browser, slip: tuple[str, str]) -> None:
    conversation = await house.conversations.new(ada.user, role="orchestrator")
    answers = {at: (await ada.get(at)).status_code for at in pages(conversation.id)}
    assert {at: status for at, status in answers.items() if status >= 500} == {}
