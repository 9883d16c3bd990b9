"""The table of pages says what the pages' files say, and routes that it makes answer as the files' own."""

import json
from pathlib import Path

import pytest
from starlette.routing import Match

from cortex.base import scan
from tests.web.conftest import Browser
from web import register


def test_the_table_holds_every_page_with_its_routes_and_links() -> None:
    assert register.table_text() == register.TABLE.read_text(encoding="utf-8"), "run `make docs`"


def test_a_page_that_the_table_does_not_know_yet_is_there(tmp_path: Path) -> None:
    table = json.loads(register.TABLE.read_text(encoding="utf-8"))
    said = table.pop("skills")
    (tmp_path / "pages.json").write_text(json.dumps(table), encoding="utf-8")
    known = [route.path for page in register.pages(tmp_path / "pages.json") for route in page.routes]
    assert known == [route.path for page in register.pages() for route in page.routes]
    assert len(said["routes"]) > 3


async def test_a_table_that_does_not_fit_the_file_is_told() -> None:
    page = register.PageFile("skills", {"routes": ["GET /skills"], "nav": []}, register.stamp_now())
    with pytest.raises(RuntimeError, match=r"does not fit .*skills\.py: run `make docs`"):
        await page.load()


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize(
    "path",
    ["/tasks", "/tasks/", "/tasks/x", "/tasks/x/y/z", "/c/new", "/c/a%2Fb", "/v1/models", "/v1/models/a/b", "/nowhere"],
)
def test_an_address_finds_the_same_route_as_among_the_pages_own(method: str, path: str) -> None:
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    own = [
        route for stem in scan.modules(register.PAGES) for route in scan.load(f"{register.PAGES}.{stem}").router.routes
    ]
    late = [route for page in register.pages() for route in page.routes]
    kinds = (Match.FULL, Match.PARTIAL)
    found = [
        [place for place, one in enumerate(routes) if one.matches(dict(scope))[0] == kind]
        for routes in (own, late)
        for kind in kinds
    ]
    assert found[:2] == found[2:]


async def test_a_method_that_a_page_does_not_take_is_refused(ada: Browser) -> None:
    answer = await ada.http.request("HEAD", "/skills")
    assert answer.status_code == 404  # as of an address that is not there
