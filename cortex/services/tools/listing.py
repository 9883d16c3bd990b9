"""Every tool as the Tools page shows it: what holds, what was set, what it costs, how it fared, what it lacks.

Reads only. What was said in a call is shown to its owner alone; of everybody's calls there are figures.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.messages import ToolSchema
from cortex.base.user import User
from cortex.ports.integrations import Setup
from cortex.selection.types import META, Domain, Example, ToolEntry, Trigger
from cortex.services.runtime import Runtime
from cortex.services.tools.edits import Sending, sending_of
from cortex.services.tools.settings import ToolSettingsService, asks_itself, shipped_sending
from cortex.services.tools.tools import PlanGround, ToolsService
from cortex.services.tools.words import Rival, rivals
from cortex.storage.calls import CallRow, CallsRepository, ToolOutcomes, ToolUsesRepository, UseOfTool
from cortex.storage.tool_settings import ToolSettingRow
from cortex.toolkit.spec import Category, Tool

DAYS = 28
PAGE_TOOLS = 150
LAST_CALLS = 12


class ToolLine(Struct, frozen=True, kw_only=True):
    """One tool. `changed`: the settings that are not as it ships; `setup`: why it is not configured, None = it is."""

    name: str
    category: str
    summary: str
    risk: str
    is_admin: bool
    is_meta: bool
    is_on: bool
    sending: Sending
    asks_first: bool
    always_asks: bool
    changed: tuple[str, ...]
    tokens_full: int
    tokens_stub: int
    setup: Setup | None
    calls: int = 0
    rescued: int = 0
    failures: int = 0
    failed_at: datetime | None = None


class CategoryLines(Struct, frozen=True, kw_only=True):
    """A category with those of its tools that are shown. `setups`: why none of them is configured, () where one is.

    partly: where some are configured, those that are not, each with the reason.
    """

    name: str
    summary: str
    setups: tuple[Setup, ...]
    partly: tuple[tuple[str, Setup], ...]
    tools: tuple[ToolLine, ...]


class ToolList(Struct, frozen=True, kw_only=True):
    """The page. Tokens of all that can be used, and of what is always sent; `found`: tools that the filter lets in."""

    categories: tuple[CategoryLines, ...]
    names: tuple[str, ...]
    tools: int
    ready: int
    tokens: int
    core_tokens: int
    never_called: int
    found: int
    page: int
    pages: int


class ToolSheet(Struct, frozen=True, kw_only=True):
    """One tool. `calls`: everybody's last ones as figures; `own`: the reader's among them, with their words."""

    line: ToolLine
    tool: Tool
    full: ToolSchema
    stub: ToolSchema
    phrases: tuple[Trigger, ...]
    examples: tuple[Example, ...]
    shipped: frozenset[str]
    calls: tuple[UseOfTool, ...]
    own: Mapping[str, CallRow]
    last_error: CallRow | None


class CategoryWords(Struct, frozen=True, kw_only=True):
    """A category for its page of words. `setups`: as in `CategoryLines`."""

    name: str
    summary: str
    tools: tuple[str, ...]
    setups: tuple[Setup, ...]
    rivals: tuple[Rival, ...]


class ToolListing(Struct, frozen=True, kw_only=True):
    """Gathers what stands about tools in the registry, the settings and the calls."""

    runtime: Runtime
    tools: ToolsService
    settings: ToolSettingsService

    async def list(self, query: str = "", category: str = "", risk: str = "", page: int = 1) -> ToolList:
        """The tools that fit: words of name, category or added phrase; a category; a risk. At most 150 a page."""
        ground, lines = await self._lines()
        fit = [line for line in lines if _fits(line, self._words_of(ground, line), query, category, risk)]
        pages = max(1, -(-len(fit) // PAGE_TOOLS))
        at = min(max(page, 1), pages)
        shown = fit[(at - 1) * PAGE_TOOLS : at * PAGE_TOOLS]
        return ToolList(
            categories=self._by_category(shown),
            names=tuple(name for name in self.runtime.registry.categories if name != META),
            tools=sum(not line.is_meta for line in lines),
            ready=sum(not line.is_meta and line.is_on and not line.setup for line in lines),
            tokens=sum(line.tokens_full for line in lines if line.is_on and not line.setup and not line.is_meta),
            core_tokens=sum(line.tokens_full for line in lines if _is_core(line)),
            never_called=sum(line.is_on and not (line.calls or line.setup or line.is_meta) for line in lines),
            found=len(fit),
            page=at,
            pages=pages,
        )

    async def category(self, name: str) -> CategoryWords:
        """A category with its tools; NotFound for one that has no words."""
        category = self.runtime.registry.category(name)
        if category is None or name == META:
            raise NotFound(f"There is no category {name!r}.")
        ground, lines = await self._lines()
        return CategoryWords(
            name=name,
            summary=category.summary,
            tools=tuple(tool.name for tool in category.tools),
            setups=_setups([line for line in lines if line.category == name]),
            rivals=rivals(ground.snapshot.domains, name),
        )

    async def sheet(self, user: User, name: str) -> ToolSheet:
        """One tool with its schema, its words and its last calls; NotFound for an unknown one."""
        tool = self.runtime.registry.get(name)
        if tool is None:
            raise NotFound(f"There is no tool {name!r}.")
        ground, lines = await self._lines()
        domain = _domain(ground, tool.category)
        entry = next(entry for entry in ground.snapshot.entries if entry.name == name)
        uses = await self.runtime.db.repository(ToolUsesRepository).of_tool(name, LAST_CALLS)
        mine = await self.runtime.db.repository(CallsRepository, user.id).of_tool(name, LAST_CALLS)
        return ToolSheet(
            line=next(line for line in lines if line.name == name),
            tool=tool,
            full=entry.full,
            stub=entry.stub,
            phrases=tuple(each for each in domain.triggers if not each.tools or name in each.tools) if domain else (),
            examples=tuple(each for each in domain.examples if name in each.tools) if domain else (),
            shipped=frozenset(said for said, _ in self.runtime.registry.categories[tool.category].examples),
            calls=tuple(uses),
            own={row.id: row for row in mine},
            last_error=next((row for row in mine if row.state in ("failed", "unknown")), None),
        )

    async def _lines(self) -> tuple[PlanGround, tuple[ToolLine, ...]]:
        """Every tool in registry order, meta tools where they stand."""
        ground = await self.tools.ground()
        settings: Mapping[str, ToolSettingRow] = await self.settings.all()
        since = self.runtime.clock() - timedelta(days=DAYS)
        uses = {use.name: use for use in await self.runtime.db.repository(ToolUsesRepository).by_tool(since)}
        setups = await self.tools.setups()
        entries = {entry.name: entry for entry in ground.snapshot.entries}
        return ground, tuple(
            _line(tool, entries[tool.name], settings.get(tool.name), uses.get(tool.name), setups.get(tool.name))
            for tool in self.runtime.registry.tools.values()
        )

    def _by_category(self, lines: Sequence[ToolLine]) -> tuple[CategoryLines, ...]:
        by_name: dict[str, list[ToolLine]] = {}
        for line in lines:
            by_name.setdefault(line.category, []).append(line)
        return tuple(_category(self.runtime.registry.categories[name], found) for name, found in by_name.items())

    def _words_of(self, ground: PlanGround, line: ToolLine) -> str:
        """Return what its category is called and for, and the phrases that were added to it."""
        summary, domain = self.runtime.registry.categories[line.category].summary, _domain(ground, line.category)
        return " ".join((line.category, summary, *(each.text for each in (domain.triggers if domain else ()))))


def _category(category: Category, lines: Sequence[ToolLine]) -> CategoryLines:
    setups = _setups(lines)
    return CategoryLines(
        name=category.name,
        summary=category.summary,
        setups=setups,
        partly=() if setups else tuple((line.name, line.setup) for line in lines if line.setup),
        tools=tuple(lines),
    )


def _line(
    tool: Tool, entry: ToolEntry, setting: ToolSettingRow | None, use: ToolOutcomes | None, setup: Setup | None
) -> ToolLine:
    kept = setting or ToolSettingRow(tool=tool.name)
    sending = sending_of(entry)
    changed = {
        "is_on": kept.is_on is False,
        "sending": sending != shipped_sending(tool),
        "asks_first": bool(kept.asks_first) and not asks_itself(tool),
        "description": entry.full.description != tool.full.description,
    }
    return ToolLine(
        name=tool.name,
        category=tool.category,
        summary=entry.summary,
        risk=tool.risk,
        is_admin=tool.admin,
        is_meta=tool.category == META,
        is_on=kept.is_on is not False,
        sending=sending,
        asks_first=asks_itself(tool) or bool(kept.asks_first),
        always_asks=asks_itself(tool),
        changed=tuple(name for name, is_changed in changed.items() if is_changed),
        tokens_full=entry.tokens_full,
        tokens_stub=entry.tokens_stub,
        setup=setup,
        calls=use.calls if use else 0,
        rescued=use.rescued if use else 0,
        failures=use.failures if use else 0,
        failed_at=use.failed_at if use else None,
    )


def _setups(lines: Sequence[ToolLine]) -> tuple[Setup, ...]:
    """Why none of these tools is configured, each reason once; () when one of them is."""
    found = [line.setup for line in lines if line.setup]
    return tuple(dict.fromkeys(found)) if len(found) == len(lines) else ()


def _fits(line: ToolLine, words: str, query: str, category: str, risk: str) -> bool:
    """Tell whether the filter lets it in."""
    if (category and line.category != category) or (risk and line.risk != risk):
        return False
    text = f"{line.name} {line.summary} {words}".casefold()
    return all(word in text for word in query.casefold().split())


def _is_core(line: ToolLine) -> bool:
    return line.sending == "always" and line.is_on and not line.setup and not line.is_meta


def _domain(ground: PlanGround, category: str) -> Domain | None:
    return next((domain for domain in ground.snapshot.domains if domain.name == category), None)
