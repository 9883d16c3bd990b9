"""The frame of previews: the one page that may be framed, by us alone, with a policy that lets nothing in or out."""

import re

import pytest

from tests.web.conftest import Browser
from web.markdown import render
from web.security import CSP


async def test_the_frame_is_in_no_origin_and_reaches_nothing(ada: Browser) -> None:
    answer = await ada.get("/preview")
    policy = answer.headers["content-security-policy"]
    assert "sandbox allow-scripts;" in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert not re.search(r"connect-src|https?:|\*|allow-same-origin|allow-popups|allow-top", policy)
    nonces = {re.search(r"script-src 'nonce-([\w-]{20,})';", policy)[1], re.search('nonce="(.*?)"', answer.text)[1]}  # type: ignore[index]
    assert len(nonces) == 1, "no script but ours"
    assert nonces.isdisjoint(re.findall('nonce="(.*?)"', (await ada.get("/preview")).text))
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-src 'self';" in CSP, "where what is drawn may lead the frame"
    assert "frame-ancestors 'none'" in CSP


@pytest.mark.parametrize("kind", ["html", "svg", "mermaid"])
def test_a_finished_listing_can_be_previewed(kind: str) -> None:
    assert f'data-preview="{kind}"' in render(f"```{kind}\n<b>x</b>\n```")


@pytest.mark.parametrize("language", ["python", "", 'html" onclick="x', "xhtml"])
def test_others_cannot(language: str) -> None:
    shown = render(f"```{language}\nx\n```")
    assert "onclick" not in shown.replace("&quot;", "")
    assert language.startswith("html") or "data-preview" not in shown
