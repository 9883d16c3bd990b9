"""A call of any tool with the least that it wants: every word is an address, so that whatever sends has a place."""

import json
from typing import Any

from cortex.base.messages import ToolCall
from cortex.toolkit.spec import Tool

PLACE = "http://a.example/x"
INVITATION = "http://a.example/invitation"
_FIT: dict[str, dict[str, Any]] = {  # else they cannot run
    "calendar_add": {"when": "2099-12-01"},
    "calendar_answer": {"appointment": INVITATION},
    "calendar_change": {"title": PLACE},
    "contact_change": {"note": PLACE},
    "cron_add": {"when": "every day at 9"},
    "email_send": {"to": "ann@a.example"},
    "mail_draft": {"subject": PLACE},
    "mail_flag": {"mails": [PLACE]},
    "mail_move": {"mails": [PLACE], "folder": "Archive"},
}
_VALUES = {"integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}


def called(tool: Tool) -> ToolCall:
    """The call, under the tool's name as its id."""
    shape: dict[str, Any] = tool.full.parameters
    given = {name: value_of(shape["properties"][name]) for name in shape.get("required", ())}
    return ToolCall(id=tool.name, name=tool.name, arguments=json.dumps({**given, **_FIT.get(tool.name, {})}))


def value_of(shape: dict[str, Any]) -> Any:
    """A value of this JSON schema."""
    return shape["enum"][0] if "enum" in shape else _VALUES.get(shape.get("type", ""), PLACE)
