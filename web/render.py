"""Jinja templates to responses: a whole page, or one block of the same template when htmx asks.

Knows no route and no service. Called by `web/pages/*`, `web/sse.py` and the error pages of `web/app.py`.
"""

import asyncio
import hashlib
import pickle
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import jinja2
from fastapi import Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from jinja2.runtime import Context as JinjaContext
from markupsafe import Markup
from msgspec import Struct, field
from starlette.types import Receive, Scope, Send

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.calm_pool import CalmPool
from cortex.base.memory import give_back
from cortex.base.record import field_names
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.base.user import User
from cortex.services.health.first_steps import FirstSteps
from cortex.services.turns.stop_all import HaltView
from web import figures, words

P = ParamSpec("P")
T = TypeVar("T")

HERE = Path(__file__).parent
ADMIN = "/admin"
MORE = "/more"
PIECE_BYTES = 65_536
PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
OPTIONS = 1  # another number with each change of how Jinja is set up here
MADE_BY = f"{jinja2.__version__} {OPTIONS}"
THREADS = 2  # that make pages; more would only take the event loop's turns


def described(words: str, **default: Any) -> Any:
    """A field that carries one line of help for the person who edits the template."""
    return field(**default)


class NavEntry(Struct, frozen=True, kw_only=True):
    """The link that leads to a page: by a line of the sidebar, or by a card of the page `under` which it is.

    Each page module may offer one, or several, as `NAV`. `order` sorts, lowest first. The sidebar has at most seven.
    under: the address of that page, "" = the sidebar; `/admin` is for admins alone.
    about: the card's sentence. state: how it is just now, where that is read fast; "" says nothing.
    port: shown only to those whose integrations open it ("" = to everybody).
    """

    title: str
    href: str
    icon: str
    order: int
    under: str = ""
    about: str = ""
    state: Callable[[Cortex, User], Awaitable[str]] | None = None
    port: str = ""

    @property
    def is_admin_only(self) -> bool:
        """Tell whether members do not see it."""
        return ADMIN in (self.href, self.under)


class SideItem(Struct, frozen=True, kw_only=True):
    """A conversation as the sidebar shows it."""

    id: str
    title: str
    running_turn: str | None = None
    source: str = "chat"
    pinned: bool = False


class SideGroup(Struct, frozen=True, kw_only=True):
    """Conversations of one day label."""

    label: str
    items: tuple[SideItem, ...]


class Toast(Struct, frozen=True, kw_only=True):
    """News after a redirect, with an optional undo (a POST to `undo_href`)."""

    text: str
    undo_href: str = ""


class Frame(Struct, frozen=True, kw_only=True):
    """The frame around every page's content, and how it is shown."""

    user: User | None = described("who is logged in; None on the login and set-up pages", default=None)
    language: str = described("the html lang attribute", default="en")
    theme: Literal["auto", "light", "dark"] = described("from the account's preference", default="auto")
    density: Literal["normal", "dense"] = described("from the account's preference", default="normal")
    text_size: Literal["normal", "small", "large"] = described("from the account's preference", default="normal")
    follows: bool = described("whether the page scrolls with an answer that is written", default=False)
    keys: bool = described("whether single-key shortcuts are on", default=True)
    here: str = described("href of the nav entry that is open", default="")
    path: str = described("the path of this page, to come back to", default="/")
    nav: tuple[NavEntry, ...] = described("the sidebar's pages, sorted, allowed for this user", default=())
    up: NavEntry | None = described("the page whose card leads to the open one", default=None)
    groups: tuple[SideGroup, ...] = described("the sidebar's conversations by day", default=())
    conversation_id: str = described("the open conversation", default="")
    top: str = described("href of the sidebar's line that leads to the open page", default="")
    tabs: tuple[NavEntry, ...] = described("the places below every page of a phone but the chat", default=())
    counts: dict[str, int] = described("href -> number shown in the sidebar", default_factory=dict)
    waiting: tuple[str, ...] = described("conversations with a question that waits for the person", default=())
    unread: int = described("how many notices wait to be read", default=0)
    is_news: bool = described("whether an unread notice leads to this page", default=False)
    is_well: bool = described("whether the daemon's checks are all green", default=True)
    first_steps: FirstSteps | None = described("the set-up, while some of it is left", default=None)
    warning: str = described("a lasting red banner: plain HTTP on a network, a slip in a file", default="")
    halts: tuple[HaltView, ...] = described(
        "what is stopped, in a banner with who, when and how to lift it", default=()
    )
    toast: Toast | None = described("news after a redirect", default=None)

    @property
    def waiting_elsewhere(self) -> tuple[str, ...]:
        """The waiting conversations that are not open here."""
        return tuple(one for one in self.waiting if one != self.conversation_id)

    @property
    def working(self) -> tuple[SideItem, ...]:
        """The conversations, jobs' among them, that work just now; not the open one, and none that waits."""
        here = (*self.waiting, self.conversation_id)
        return tuple(one for group in self.groups for one in group.items if one.running_turn and one.id not in here)


class Context(Struct, frozen=True, kw_only=True):
    """The values of a template. Each page has its own subclass; every field says what it is by `described`."""

    frame: Frame = described("sidebar, theme, shortcuts", default_factory=Frame)
    error: str = described("why what was typed was refused", default="")
    error_field: str = described("the field that this is about, or empty", default="")


class ConfirmContext(Context, frozen=True, kw_only=True):
    """The page behind a destructive link (`confirm.html`)."""

    title: str = described("the question")
    text: str = described("what will happen, and whether it can be undone")
    action: str = described("where the form posts")
    words: str = described("the button, a verb")
    back: str = described("where 'Keep it' leads")


class DeletionContext(Context, frozen=True, kw_only=True):
    """The page before an account is deleted (`account_delete.html`)."""

    name: str = described("whose account")
    action: str = described("where the form posts")
    back: str = described("where 'Keep it' leads")
    needs_password: bool = described("whether its person's password is asked for", default=False)


class CompiledTemplates(FileSystemBytecodeCache):
    """Keep compiled templates in one folder, so that a start does not compile the chat's again.

    Where nothing can be written, or what is there is damaged, a template is compiled as ever. Trusted like Python's own
    compiled modules: who may write there may change Cortex itself.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), "%s.jinja")

    def get_source_checksum(self, source: str) -> str:
        """Tell what the compiled one is kept for: this text, by this version of Jinja, set up so."""
        return super().get_source_checksum(f"{MADE_BY} {source}")

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket where its template was compiled before."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, TypeError, LookupError, AttributeError, pickle.UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it where that can be."""
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


class Renderer:
    """Templates and static addresses."""

    def __init__(self, templates: Path = HERE / "templates", static: Path = HERE / "static") -> None:
        """Templates are compiled on first use and kept; a file's address is hashed once."""
        self._static = static
        self._given = (templates, static)
        self._threads = CalmPool(THREADS, "page")
        self.env = Environment(
            loader=FileSystemLoader(templates),
            bytecode_cache=CompiledTemplates(templates.parent / "__pycache__"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.env.globals.update({"_": gettext, "static": lru_cache(maxsize=256)(self.static_url)})
        self.env.globals["MAX_ROUNDS"] = MAX_ROUNDS_CAP
        self.env.globals["qr"] = lambda text: scan.load("web.qr").drawn(text)
        self.env.globals["site_version"] = lambda: self.version
        self.env.filters.update(
            {
                **words.FILTERS,
                "number": figures.number,
                "compact": figures.compact,
                "due": figures.due,
                "local_day": _in_zone(figures.local_day),
                "long_day": figures.long_day,
                "plain_day": figures.plain_day,
                "weekday": figures.weekday,
                "clock": _in_zone(figures.clock),
                "day": _in_zone(figures.day),
                "exact": _in_zone(figures.exact),
                "moment": _in_zone(figures.moment),
                "when": _in_zone(figures.when),
                "within": _in_zone(figures.within),
            }
        )

    @cached_property
    def version(self) -> str:
        """A hash of all that a browser is given: another one means that a page that is open is out of date."""
        digest = hashlib.sha256()
        for file in sorted(one for folder in self._given for one in folder.rglob("*.*") if one.suffix != ".part"):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:12]

    def static_url(self, path: str) -> str:
        """`/static/<path>?v=<hash>`: the address changes with the content, so it may be cached for ever."""
        file = self._static / path
        digest = hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else "none"
        return f"/static/{path}?v={digest}"

    def variables(self, context: Context) -> dict[str, Any]:
        """The context's fields plus the `ui` macros, bound to this page's user (zone, language)."""
        names = {name: getattr(context, name) for name in field_names(context)}
        return {**names, "ui": self.env.get_template("ui.html").make_module(names)}

    def page(self, template: str, context: Context) -> str:
        """The whole document."""
        return self.env.get_template(template).render(self.variables(context))

    def fragment(self, template: str, block: str, context: Context) -> Markup:
        """One block of the template, as the page would show it."""
        source = self.env.get_template(template)
        return Markup("".join(source.blocks[block](source.new_context(self.variables(context)))))  # noqa: S704 - our own template

    async def aside(self, make: Callable[P, T], /, *given: P.args, **named: P.kwargs) -> T:
        """Return what `make` gives, made in a thread: for long texts, which must not keep others waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(make, *given, **named))

    def load_ahead(self, names: Sequence[str] = ("base.html", "ui.html", "chat.html", "turn.html")) -> None:
        """Have these templates ready, the chat's: .2 s of processor where they were never compiled."""
        for name in names:
            self.env.get_template(name)
        give_back()  # of 9 MB that this takes 4 stay

    def macros(self, template: str, context: Context) -> Any:
        """The macros of a template as a module; Any because Jinja makes its attributes at run time."""
        return self.env.get_template(template).make_module(self.variables(context))


class RenderedPage(HTMLResponse):
    """A page that is made as it is sent, in a thread, a long one sent in pieces: others are served in between.

    A template is compiled at its first use, and a page may show long texts: each takes the processor for a while.
    """

    def __init__(self, pages: Renderer, make: Callable[[], str], status: int) -> None:
        """`make` gives the document or the part of it."""
        super().__init__(status_code=status, headers={"Vary": "HX-Request"})
        self._pages, self._make = pages, make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make it and send it."""
        made = HTMLResponse(await self._pages.aside(self._make), self.status_code, background=self.background)
        made.raw_headers += [one for one in self.raw_headers if one[0] not in (b"content-type", b"content-length")]
        await in_pieces(made)(scope, receive, send)


def respond(
    request: Request, template: str, context: Context, *, block: str = "content", status: int = 200
) -> HTMLResponse:
    """The page, or only `block` of it when htmx asks for a part of the document."""
    pages: Renderer = request.app.state.pages
    is_part = wants_fragment(request)

    def make() -> str:
        return str(_part(pages, template, block, context)) if is_part else pages.page(template, context)

    answer = RenderedPage(pages, make, status)
    if hasattr(request.state, "shown"):
        answer.delete_cookie(request.state.shown)
    return answer


def address(path: str, /, **asked: object) -> str:
    """The path with those of the values that say something: no empty text, no 0, no False."""
    query = urlencode({name: "1" if value is True else value for name, value in asked.items() if value})
    return f"{path}?{query}" if query else path


def download(body: str | bytes, name: str, kind: str) -> Response:
    """A file to save under this name, which nobody keeps on the way."""
    return in_pieces(Response(body, media_type=kind, headers=saved_as(name)))


def saved_as(name: str) -> dict[str, str]:
    """The headers of what is to be saved under this name, which may hold any sign."""
    named = f'filename="{name}"' if PLAIN_NAME.fullmatch(name) else f"filename*=utf-8''{quote(name, safe='')}"
    return {"Content-Disposition": f"attachment; {named}", "Cache-Control": "no-store"}


def in_pieces(answer: Response) -> Response:
    """The same answer, a long one packed and sent a piece at a time: others are served in between."""
    body = bytes(answer.body)
    if len(body) <= PIECE_BYTES:
        return answer

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), PIECE_BYTES):
            yield body[start : start + PIECE_BYTES]
            await asyncio.sleep(0)

    made = StreamingResponse(pieces(), answer.status_code, background=answer.background)
    made.raw_headers = [(name, value) for name, value in answer.raw_headers if name != b"content-length"]
    return made


def _part(pages: Renderer, template: str, block: str, context: Context) -> Markup:
    """The block, and news beside it: a fragment has no place of its own for them."""
    body = pages.fragment(template, block, context)
    if context.frame.toast is None:
        return body
    news = pages.macros("ui.html", context).toast(context.frame.toast)
    return body + Markup('<hx-partial hx-target="#toasts" hx-swap="innerHTML">{}</hx-partial>').format(news)


def wants_fragment(request: Request) -> bool:
    """Tell whether htmx asks, and not for the whole document (a boosted link or a history visit)."""
    headers = request.headers
    return headers.get("HX-Request") == "true" and headers.get("HX-Request-Type", "partial") == "partial"


def gettext(words: str) -> str:
    """The words in the reader's language; English, the one catalogue there is."""
    return words


def zone_of(user: User | None) -> ZoneInfo:
    """The reader's time zone; UTC for visitors."""
    return ZoneInfo(user.time_zone) if user else ZoneInfo("UTC")


def _in_zone(filter_: Any) -> Any:
    """A Jinja filter that knows the page's user. Any: Jinja reads the marker of `pass_context` only."""

    @pass_context
    def bound(context: JinjaContext, value: Any) -> Any:
        frame: Frame = context["frame"]
        return filter_(value, zone_of(frame.user))

    return bound
