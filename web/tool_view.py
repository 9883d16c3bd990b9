"""What the pages of one tool share: the context of `tool.html`, and how it is shown.

Not a page: `web/pages/tools.py` and `tool_description.py` call it.
"""

import json
from typing import Any

from fastapi.responses import Response

from cortex.services.tools.listing import ToolSheet
from cortex.services.workshop.tool_effects import DescriptionEffect
from web.render import Context, described
from web.visit import Visit

TOOLS = "/admin/tools"
EXAMPLES_A_PAGE = 60


class ToolContext(Context, frozen=True, kw_only=True):
    """One tool."""

    sheet: ToolSheet = described("the tool with schema, words, last calls")
    full: str = described("its parameters as JSON to read")
    stub: str = described("the same in the short form")
    first: int = described("number of the first example shown, from 0", default=0)
    size: int = described("how many examples a page shows", default=EXAMPLES_A_PAGE)
    description: str = described("its description as typed or as kept")
    messages: str = described("messages to try the description with, one a line", default="")
    told: DescriptionEffect | None = described("what the description as typed would change", default=None)


async def tool_page(visit: Visit, name: str, *, block: str = "content", **more: Any) -> Response:
    """The page of a tool; `more`: fields of `ToolContext` that are not as kept."""
    sheet = await visit.services.tool_listing.sheet(visit.user, name)
    full, stub = (json.dumps(form.parameters, indent=2, ensure_ascii=False) for form in (sheet.full, sheet.stub))
    context = ToolContext(
        sheet=sheet,
        full=full,
        stub=stub,
        **{"description": sheet.full.description, **more},
    )
    return await visit.show("tool.html", context, block=block, status=422 if context.error else 200)
