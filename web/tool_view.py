"""What the pages of one tool share: the context of `tool.html`, and how it is shown.

Not a page: `web/pages/tools.py` and `tool_description.py` call it.
"""

import json
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from cortex.base.user import User
from cortex.services.tools.listing import ToolSheet
from cortex.services.workshop.tool_effects import DescriptionEffect
from web.deps import Services
from web.frame import frame_of
from web.render import Context, described, respond

TOOLS = "/admin/tools"
EXAMPLES_A_PAGE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Context):
    """One tool."""

    sheet: ToolSheet = described("the tool with schema, words, last calls")
    full: str = described("its parameters as JSON to read")
    stub: str = described("the same in the short form")
    first: int = described("number of the first example shown, from 0", default=0)
    size: int = described("how many examples a page shows", default=EXAMPLES_A_PAGE)
    description: str = described("its description as typed or as kept")
    messages: str = described("messages to try the description with, one a line", default="")
    told: DescriptionEffect | None = described("what the description as typed would change", default=None)
    error: str = described("why the description was refused", default="")


async def tool_page(
    request: Request, services: Services, user: User, name: str, *, block: str = "content", **more: Any
) -> Response:
    """The page of a tool; `more`: fields of `ToolContext` that are not as kept."""
    sheet = await services.tool_listing.sheet(user, name)
    full, stub = (json.dumps(form.parameters, indent=2, ensure_ascii=False) for form in (sheet.full, sheet.stub))
    context = ToolContext(
        frame=await frame_of(request, services, user, here=TOOLS),
        sheet=sheet,
        full=full,
        stub=stub,
        **{"description": sheet.full.description, **more},
    )
    return respond(request, "tool.html", context, block=block, status=422 if context.error else 200)
