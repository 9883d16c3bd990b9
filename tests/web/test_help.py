"""Help: the guides are there as pages, their links lead on, and the pages they speak of exist."""

import re

import pytest

from tests.web.conftest import Browser
from web.pages.help import RUN, USE


async def test_help_is_found_from_more_and_lists_each_guide(ada: Browser) -> None:
    assert 'href="/help"' in (await ada.get("/more")).text
    page = (await ada.get("/help")).text
    assert [f'href="/help/{name}"' in page for name in (*USE, *RUN)] == [True] * len((*USE, *RUN))
    assert "The first day, and Today" in page


@pytest.mark.parametrize("name", [*USE, *RUN])
async def test_a_guide_reads_as_a_page_and_its_links_lead_somewhere(ada: Browser, name: str) -> None:
    page = await ada.get(f"/help/{name}")
    assert page.status_code == 200
    words = page.text.partition('<div class="prose entry">')[2].partition("</main>")[0]
    assert "<p" in words
    for href in re.findall(r'href="([^"]+)"', words):
        if not href.startswith(("https:", "http:", "#")):
            assert href.startswith("/help/"), href
            assert (await ada.get(href)).status_code == 200, href
    assert "](" not in re.sub(r"<(code|pre)\b.*?</\1>", "", words, flags=re.DOTALL), "a link that is none"


@pytest.mark.parametrize("name", ["nowhere", "progress", "..%2Fpyproject", "decisions"])
async def test_no_other_file_is_shown(ada: Browser, name: str) -> None:
    assert (await ada.get(f"/help/{name}")).status_code == 404
