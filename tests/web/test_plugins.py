"""The admin's page of plug-ins: what a package says of itself is shown before anything of it runs."""

import asyncio
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from tests.plugin_packages import install, package_folder
from tests.web.conftest import Browser

PAGE = "/admin/plugins"
TOOL = '''
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool

SUMMARY = "stars"

@tool(effect="read")
async def sky_star(ctx: Ctx) -> str:
    """Find a star."""
    return "Vega"
'''


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    files = {"cortex_sky/__init__.py": "", "cortex_sky/sky.py": TOOL}
    says = {"Summary": "Stars <script>alert(1)</script>", "Author_email": "Ann <ann@a.example>", "License": "MIT"}
    with package_folder(tmp_path / "site") as folder:
        install(folder, "cortex-sky", files, {"cortex.tools": {"sky": "cortex_sky.sky"}}, **says)
        yield folder


def digest_on(page: str) -> str:
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


async def test_a_server_without_plug_ins_says_how_to_get_one(ada: Browser) -> None:
    assert "No plug-ins" in (await ada.get(PAGE)).text


async def test_a_package_is_shown_with_all_that_an_admin_needs_and_nothing_of_it_runs(site: Path, ada: Browser) -> None:
    page = (await ada.get(PAGE)).text
    for text in ("cortex-sky", "1.0", "Ann &lt;ann@a.example&gt;", "MIT", "cortex_sky.sky", digest_on(page)):
        assert text in page
    assert "all rights" in page
    assert "<script>alert" not in page
    assert "cortex_sky" not in sys.modules


async def test_members_and_strangers_do_not_come_in(site: Path, bob: Browser, visitor: httpx.AsyncClient) -> None:
    assert (await bob.get(PAGE)).status_code == 403
    for path in ("allow", "revoke"):
        assert (await bob.post(f"{PAGE}/{path}", name="cortex-sky")).status_code == 403
    assert (await visitor.get(PAGE)).status_code in (302, 303)


async def test_allowing_loads_it_and_revoking_takes_it_away(site: Path, ada: Browser, house: Cortex) -> None:
    digest = digest_on((await ada.get(PAGE)).text)
    assert (await ada.post(f"{PAGE}/allow", name="cortex-sky", digest=digest)).status_code == 303
    page = (await ada.get(PAGE)).text
    assert "sky_star" in page
    assert "/admin/plugins/allow" not in page
    assert "sky_star" in (await ada.get("/admin/tools")).text
    assert "1 allowed" in (await ada.get("/admin")).text
    assert (await ada.post(f"{PAGE}/revoke", name="cortex-sky")).status_code == 303
    assert "sky_star" not in (await ada.get(PAGE)).text
    assert "sky_star" not in house.runtime.registry.tools


async def test_a_change_is_said_and_asked_about_again(site: Path, ada: Browser) -> None:
    page = (await ada.get(PAGE)).text
    await ada.post(f"{PAGE}/allow", name="cortex-sky", digest=digest_on(page))
    await asyncio.to_thread((site / "cortex_sky/sky.py").write_text, f"{TOOL}\n", encoding="utf-8")
    changed = (await ada.get(PAGE)).text
    assert "have changed since" in changed
    assert digest_on(changed) != digest_on(page)
    assert "sky_star" not in (await ada.get("/admin/tools")).text
    assert "what was allowed" in (await ada.get("/admin/health")).text
    refused = await ada.post(f"{PAGE}/allow", name="cortex-sky", digest=digest_on(page))
    assert refused.status_code == 409
    assert "while you were" in refused.text


async def test_an_import_that_fails_is_shown_with_its_error(site: Path, ada: Browser) -> None:
    await asyncio.to_thread(
        (site / "cortex_sky/sky.py").write_text, "raise RuntimeError('<no luck>')", encoding="utf-8"
    )
    await ada.post(f"{PAGE}/allow", name="cortex-sky", digest=digest_on((await ada.get(PAGE)).text))
    assert "RuntimeError: &lt;no luck&gt;" in (await ada.get(PAGE)).text
