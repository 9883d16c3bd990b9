"""The pages by their table, `pages.json`: a page's file is loaded once somebody asks for one of its addresses.

Loaded at the start they were 5 MB and a tenth of its processor. `make docs` writes the table (`python -m
web.register`), `make check` compares it. A file that it does not know yet is loaded at once. `web/app.py` asks.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from re import Pattern
from types import ModuleType
from typing import Any

from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Receive, Scope, Send

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.errors import CortexError
from cortex.base.user import User
from web.render import NavEntry

PAGES = "web.pages"
TABLE = Path(__file__).with_name("pages.json")
SHOWN = ("title", "href", "icon", "order", "under", "about", "port")  # of a `NavEntry`: what is no function
PROGRAM = tuple(TABLE.parents[1] / room for room in ("cortex", "web"))
Said = dict[str, Any]  # of one page: "routes", a line each, and "nav"
Stamp = tuple[int, int]  # of the program: the newest time of its modules in ns, their bytes

log = logging.getLogger(__name__)


class ChangedOnDisk(CortexError):
    """The files of the program are no longer those that this process was started from."""

    status = 503


class PageFile:
    """A file of `pages/` by what the table says of it."""

    def __init__(self, stem: str, said: Said, stamp: "Stamp") -> None:
        """Load nothing; `stamp` is the program's at the start, for a load that may be weeks away."""
        self._dotted = f"{PAGES}.{stem}"
        self._file = TABLE.with_name("pages") / f"{stem}.py"
        self._said = said
        self._stamp = stamp
        self._module: ModuleType | None = None
        self.routes = [LateRoute(self, number, *line.split(" ")) for number, line in enumerate(said["routes"])]
        self.nav = tuple(self._entry(number, entry) for number, entry in enumerate(said["nav"]))

    async def load(self) -> ModuleType:
        """Return its module, imported in a thread. Whatever the import raises is raised; the next call tries anew."""
        if self._module is None:
            self._module = await asyncio.to_thread(self._load)
        return self._module

    def _load(self) -> ModuleType:
        if self._dotted not in sys.modules and stamp_now() != self._stamp:
            log.error("The program has changed since the start, %s is not loaded: restart Cortex", self._file)
            raise ChangedOnDisk("Cortex was updated while it ran, so this page cannot be opened. Restart Cortex.")
        module = scan.load(self._dotted)
        if said_of(module) != self._said:
            raise RuntimeError(f"{TABLE.name} does not fit {self._file}: run `make docs`, or restart after an update")
        return module

    def _entry(self, number: int, entry: Said) -> NavEntry:
        async def state(services: Cortex, user: User) -> str:
            read = entries(await self.load())[number].state
            return await read(services, user) if read else ""

        shown = {name: value for name, value in entry.items() if name in SHOWN}
        return NavEntry(**shown, state=state if entry["state"] else None)


class LateRoute(BaseRoute):
    """One route of a page: finds out by itself whether an address is its own, has all else done by the page's."""

    def __init__(self, page: PageFile, number: int, methods: str, path: str) -> None:
        """`number`: its place among the page's. `methods`: separated by commas."""
        self._page, self._number = page, number
        self.methods, self.path = frozenset(methods.split(",")), path
        self._beginning, brace, _ = path.partition("{")
        self._is_whole = not brace
        self._pattern: Pattern[str] | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As other routes do; whoever handles it adds what stands in the path."""
        asked: str = scope["path"]
        if scope["type"] != "http" or not asked.startswith(self._beginning):
            return Match.NONE, {}
        if self._is_whole:
            is_ours = asked == self.path
        else:
            self._pattern = self._pattern or compile_path(self.path)[0]
            is_ours = self._pattern.match(asked) is not None
        if not is_ours:
            return Match.NONE, {}
        return Match.FULL if scope["method"] in self.methods else Match.PARTIAL, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the page's own route do it, also where it refuses the method."""
        route = (await self._page.load()).router.routes[self._number]
        scope.update(route.matches(scope)[1])
        await route.handle(scope, receive, send)


def pages(file: Path = TABLE) -> list[PageFile]:
    """Return all there are, in the order in which their routes are asked. `file`: the table."""
    table: dict[str, Said] = json.loads(file.read_text(encoding="utf-8"))
    stamp = stamp_now()
    return [
        PageFile(stem, table[stem] if stem in table else said_of(scan.load(f"{PAGES}.{stem}")), stamp)
        for stem in scan.modules(PAGES)
    ]


def stamp_now() -> Stamp:
    """Return what tells whether any module of the program was changed: a page of one version would meet another's."""
    newest = size = 0
    for room in PROGRAM:
        for folder, _, names in os.walk(room):
            for name in names:
                if name.endswith(".py"):
                    found = os.stat(f"{folder}/{name}")
                    newest, size = max(newest, found.st_mtime_ns), size + found.st_size
    return newest, size


def entries(page: ModuleType) -> tuple[NavEntry, ...]:
    """Return the links that a page's module offers."""
    nav: NavEntry | tuple[NavEntry, ...] = getattr(page, "NAV", ())
    return (nav,) if isinstance(nav, NavEntry) else nav


def said_of(page: ModuleType) -> Said:
    """Return what the table has to say of a page's module."""
    return {"routes": list(_lines(page.router.routes)), "nav": [_shown(entry) for entry in entries(page)]}


def _lines(routes: Iterable[Any]) -> Iterator[str]:
    for route in routes:
        yield f"{','.join(sorted(route.methods))} {route.path}"


def _shown(entry: NavEntry) -> Said:
    return {**{name: getattr(entry, name) for name in SHOWN}, "state": entry.state is not None}


def table_text() -> str:
    """Return the table as it has to be: a JSON object with an entry for each page, by its stem."""
    table = {stem: said_of(scan.load(f"{PAGES}.{stem}")) for stem in scan.modules(PAGES)}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table_text())
