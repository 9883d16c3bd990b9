"""What an error page gives back of a form: what a person wrote, and nothing that lets anybody in."""

import re

from fastapi import Request
from starlette.datastructures import FormData

from cortex.integrations.aether_db.form import AetherDbForm
from cortex.integrations.cards.aether import AetherForm
from cortex.integrations.cards.talk import TalkForm
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.mcp.form import McpForm
from cortex.services.integrations.forms import secrets_of
from tests.web.conftest import Browser
from web.errors import _written

FORMS = (AetherForm, AetherDbForm, HomeAssistantForm, McpForm, TalkForm)


def written(fields: dict[str, str]) -> tuple[str, ...]:
    return _written(Request({"type": "http", "state": {"form": FormData(fields)}}))


def test_no_secret_of_any_form_is_given_back() -> None:
    names = [name for form in FORMS for name in secrets_of(form)]
    assert {"password", "token", "environment", "headers"} <= {*names}
    assert [name for name in names if written({name: "Authorization: Bearer abc"})] == []


async def test_a_message_is_given_back_and_a_pasted_configuration_is_not(ada: Browser) -> None:
    box = re.search(r'<textarea[^>]* name="([^"]+)"', (await ada.get("/admin/mcp")).text)
    assert box is not None
    assert written({box[1]: '{"mcpServers": {"notes": {"env": {"NOTES_API_KEY": "abc"}}}}'}) == ()
    assert written({"text": "what a person wrote"}) == ("what a person wrote",)
