"""A token made on its page in Chromium, used by OpenAI's client, its question answered on the page, and revoked."""

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, go
from tests.e2e.person import poll
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser


def test_a_program_gets_a_token_asks_and_is_shut_out(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, width=390, height=844)
    page = go(window, "/account/keys")
    page.get_by_role("link", name="Tokens").click()
    expect(page.locator("#main")).to_contain_text("No tokens yet")
    page.get_by_role("link", name="Create token").click()
    if page.get_by_label("Password").count():
        page.get_by_label("Password").fill(PASSWORD)
        page.keyboard.press("Enter")
    page.get_by_label("Name").fill("Editor")
    page.get_by_label("Tools").fill("tasks, kitchen_sink")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#main")).to_contain_text("'kitchen_sink' is not a tool or category")
    forgive(window, 422)
    assert overflow_px(page) <= 0
    page.get_by_label("Tools").fill("tasks, shell_exec")
    page.get_by_role("button", name="Create token").click()
    shown = page.get_by_role("status").filter(has_text="It is shown only once")
    token = shown.locator("code").inner_text()
    assert overflow_px(page) <= 0
    with openai.OpenAI(base_url=f"{house.origin}/v1", api_key=token, timeout=PATIENCE_S, max_retries=0) as client:
        said = client.chat.completions.create(
            model="cortex", messages=[{"role": "user", "content": "add milk to my shopping list"}]
        )
        assert said.choices[0].message.content
        assert "milk" in ada.get("/tasks").text
        page = go(window, "/account/tokens")
        assert token not in page.content()
        page.get_by_role("link", name="conversation 1").click()
        expect(page.locator("#main")).to_contain_text("add milk to my shopping list")
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(
                lambda: [
                    chunk.choices[0].delta.content or ""
                    for chunk in client.chat.completions.create(
                        model="cortex", messages=[{"role": "user", "content": "run `df -h` in the shell"}], stream=True
                    )
                ]
            )
            poll(lambda: "Needs your OK" in ada.get("/notifications").text)
            page = go(window, "/notifications")
            page.locator("#main a[href^='/c/']").first.click()
            page.get_by_role("button", name="Deny").click()
            assert "".join(asking.result(PATIENCE_S))
        page = go(window, "/account/tokens")
        page.get_by_role("link", name="Revoke Editor").click()
        page.get_by_role("button", name="Revoke").click()
        expect(page.locator("#main")).to_contain_text("No tokens yet")
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
