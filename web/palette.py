"""What the palette (Ctrl K) shows for what was typed: chats, pages, deeds. No rule of its own: services find.

`>` in front: only deeds. `?`: ask Cortex. Called by `web/pages/search.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.ids import new_id
from cortex.services.search.search import Hit, HitGroup, Piece, fits, marked
from web.deeds import Deed, deeds_of
from web.frame import entries_for
from web.render import NavEntry
from web.visit import Visit

RECENT = 5
OF_A_GROUP = 6
MESSAGES_MOST = 3  # a palette is to go somewhere; the search page has them all
DEEDS_AT_FIRST = 5
ONLY_DEEDS, ASK = ">", "?"
CHATS = ("titles", "messages")
ICONS = {"titles": "chat", "messages": "chat", "tasks": "task", "jobs": "repeat", "notes": "note", "files": "folder"}


class PaletteItem(Struct, frozen=True, kw_only=True):
    """A line. `posts`: the fields of the form that it sends to `href`; None for a link."""

    title: Sequence[Piece]
    href: str
    icon: str
    about: str = ""
    at: datetime | None = None
    keys: str = ""
    posts: Mapping[str, str] | None = None


class PaletteGroup(Struct, frozen=True, kw_only=True):
    """Lines under one heading."""

    kind: Literal["recent", "chats", "pages", "do"]
    items: Sequence[PaletteItem]


async def palette_of(visit: Visit, query: str) -> Sequence[PaletteGroup]:
    """Find what fits, best first; nothing typed gives the chats used last. Groups without a line are left out."""
    if query.startswith(ASK):
        words = query.removeprefix(ASK).strip()
        return [PaletteGroup(kind="do", items=[asking(words)])] if words else []
    if query.startswith(ONLY_DEEDS):
        return _filled(PaletteGroup(kind="do", items=await deeds_found(visit, query.removeprefix(ONLY_DEEDS).strip())))
    if not query:
        recent = PaletteGroup(kind="recent", items=await _recent(visit))
        return _filled(recent, PaletteGroup(kind="do", items=(await deeds_found(visit, ""))[:DEEDS_AT_FIRST]))
    found = await visit.services.search.find(visit.user, query)
    chats = [item for group in found if group.kind in CHATS for item in _hits(group)]
    things = [item for group in found if group.kind not in CHATS for item in _hits(group)]
    pages = [*await pages_found(visit, query), *things]
    return _filled(
        PaletteGroup(kind="chats", items=chats),
        PaletteGroup(kind="pages", items=pages),
        PaletteGroup(kind="do", items=(await deeds_found(visit, query))[:OF_A_GROUP]),
    )


async def pages_found(visit: Visit, query: str) -> Sequence[PaletteItem]:
    """Return the pages that this person may open and whose title or sentence fits."""
    entries = await entries_for(visit.request, visit.services, visit.user)
    fitting = [entry for entry in entries if fits(f"{entry.title} {entry.about}", query)]
    by_title = sorted(fitting, key=lambda entry: not fits(entry.title, query))
    return [_page(entry, query) for entry in by_title[:OF_A_GROUP]]


async def deeds_found(visit: Visit, query: str) -> Sequence[PaletteItem]:
    """Return what this person may do and whose words fit, those first whose title does."""
    chosen = await visit.services.preferences.get(visit.user)
    deeds = deeds_of(visit.user, has_engine=chosen.engine)
    fitting = [deed for deed in deeds if fits(f"{deed.title} {deed.about} {deed.also}", query)]
    return [_deed(deed, query) for deed in sorted(fitting, key=lambda deed: not fits(deed.title, query))]


def asking(words: str) -> PaletteItem:
    """Return the line that sends the words to Cortex in a chat of their own."""
    # never a link: whoever made one would speak as the person
    sent = {"text": words, "once": new_id()}
    return PaletteItem(title=((f"Ask Cortex: “{words}”", False),), href="/c/new/messages", icon="up", posts=sent)


async def _recent(visit: Visit) -> list[PaletteItem]:
    groups = await visit.services.conversations.list(visit.user)
    rows = sorted((c for group in groups for c in group.conversations), key=lambda c: c.updated_at, reverse=True)
    return [
        PaletteItem(title=((row.title, False),), href=f"/c/{row.id}", icon="chat", at=row.updated_at)
        for row in rows[:RECENT]
    ]


def _hits(group: HitGroup) -> Iterator[PaletteItem]:
    most = MESSAGES_MOST if group.kind == "messages" else OF_A_GROUP
    for hit in group.hits[:most]:
        shown = hit.snippet if group.kind == "messages" else hit.title
        about = "".join(words for words, _ in hit.title) if group.kind == "messages" else hit.where
        yield PaletteItem(title=shown or hit.title, href=hit.path, icon=_icon(group, hit), about=about, at=hit.at)


def _icon(group: HitGroup, hit: Hit) -> str:
    return "fold" if hit.is_archived else ICONS[group.kind]


def _page(entry: NavEntry, query: str) -> PaletteItem:
    return PaletteItem(title=marked(entry.title, query), href=entry.href, icon=entry.icon, about=entry.about)


def _deed(deed: Deed, query: str) -> PaletteItem:
    return PaletteItem(
        title=marked(deed.title, query),
        href=deed.href,
        icon=deed.icon,
        about=deed.about,
        keys=deed.keys,
        posts=deed.posts,
    )


def _filled(*groups: PaletteGroup) -> list[PaletteGroup]:
    return [group for group in groups if group.items]
