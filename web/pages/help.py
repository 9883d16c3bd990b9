"""Help: the guides of `docs/` as pages, so that they are there where Cortex is, without a network."""

import re
from collections.abc import Sequence
from pathlib import Path

from fastapi.responses import Response

from cortex.base.errors import NotFound
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()
HREF = "/help"
NAV = NavEntry(
    title="Help", href=HREF, icon="book", order=90, under=MORE, about="How things work here, in guides to read."
)
USE = (
    "today",
    "chats",
    "calendar",
    "contacts",
    "mail",
    "notifications",
    "files",
    "memory",
    "journals",
    "your-data",
    "home-assistant",
    "telegram",
    "matrix",
    "talk",
)
RUN = ("proxies", "models", "local-models", "updating", "commands", "channels", "mcp", "security")
# In a wheel they lie beside the pages, in a checkout in its `docs`.
PLACES = (Path(__file__).parents[1] / "help", Path(__file__).parents[2] / "docs")
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([^)\s]+)\)")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")


class HelpContext(Context, frozen=True, kw_only=True):
    """The list, or one guide."""

    title: str = described("of the guide, or empty", default="")
    text: str = described("its Markdown", default="")
    use: Sequence[tuple[str, str]] = described("address and title of those for everybody", default=())
    run: Sequence[tuple[str, str]] = described("the same of those for whoever runs Cortex", default=())


@router.get(HREF)
async def show(visit: UserVisit) -> Response:
    """The list."""
    return await visit.show("help.html", HelpContext(use=_titles(USE), run=_titles(RUN)))


@router.get(HREF + "/{guide}")
async def show_guide(visit: UserVisit, guide: str) -> Response:
    """One guide."""
    if guide not in (*USE, *RUN):
        raise NotFound("There is no such guide.")
    title, _, text = _read(guide).partition("\n")
    return await visit.show("help.html", HelpContext(title=title.removeprefix("# "), text=_LINK.sub(_led, text)))


def _titles(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{HREF}/{name}", _read(name).partition("\n")[0].removeprefix("# ")) for name in names]


def _read(name: str) -> str:
    file = next(one for place in PLACES if (one := place / f"{name}.md").is_file())
    return _PICTURE.sub("", file.read_text(encoding="utf-8"))


def _led(found: re.Match[str]) -> str:
    """A link to another guide leads to its page; one to a file that is not here becomes its words."""
    words, to = found[1], found[2]
    name = to.partition("#")[0]
    if not name:
        return words
    stem = name.removesuffix(".md")
    return f"[{words}]({HREF}/{stem})" if stem in (*USE, *RUN) else words
