"""Admin: MCP servers. Which are set up, the tools of each to allow one by one, what changed in them, a login to one."""

import json
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from typing import Any
from urllib.parse import quote, urlsplit

from fastapi.responses import Response
from msgspec import Struct

from cortex.app import Cortex
from cortex.base.errors import CortexError, UserError
from cortex.base.hidden import show_hidden
from cortex.base.user import User
from cortex.ports.mcp import PAGE
from cortex.services.integrations.mcp import Choice, SeenTool
from cortex.services.integrations.mcp_needs import ServerNeeds
from web.bodies import TEXT_BYTES, takes
from web.deps import Services
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Return how many there are."""
    count = len(await services.mcp_tools.servers())
    return f"{count} connected" if count else ""


NAV = NavEntry(
    title="MCP servers",
    href=PAGE,
    icon="plug",
    order=66,
    under=ADMIN,
    about="Connect servers and choose which of their tools to allow.",
    state=_state,
)


class ServerLine(Struct, frozen=True, kw_only=True):
    """A server in the list."""

    name: str
    state: str
    place: str
    allowed: int
    count: int
    changed: int


class ServersContext(Context, frozen=True, kw_only=True):
    """The list, and the box to paste into."""

    servers: Sequence[ServerLine] = described("the servers that are set up")
    pasted: str = described("what was pasted and refused", default="")


class ToolChoice(Struct, frozen=True, kw_only=True):
    """A tool to allow or not. `diff`: lines of what changed since it was allowed, with a sign each."""

    seen: SeenTool
    schema: str
    diff: Sequence[str]


class ServerContext(Context, frozen=True, kw_only=True):
    """One server with its tools."""

    line: ServerLine = described("the server")
    tools: Sequence[ToolChoice] = described("its tools as they were seen last")
    has_login: bool = described("whether it is set up with a login by OAuth")
    needs: ServerNeeds | None = described("what its program lacks, where it lacks something")
    login_at: str = described("the address at which the admin logs in, begun just now", default="")
    login_host: str = described("its host", default="")


class NeedsContext(Context, frozen=True, kw_only=True):
    """The page of what programs need of this machine."""

    servers: Sequence[ServerNeeds] = described("the servers of which there is something to say")
    names: str = described("all that were asked for, by commas")


@router.get(PAGE)
async def show(visit: ReauthedAdminVisit) -> Response:
    """The servers."""
    return await _list(visit)


@router.post(PAGE)
@takes(TEXT_BYTES)
async def paste(visit: ReauthedAdminVisit) -> Response:
    """Set up what the usual JSON says."""
    text = str((await visit.request.form()).get("config", ""))
    try:
        names = await visit.services.mcp_tools.paste(visit.user, text)
    except CortexError as refused:
        return await _list(visit, text, refused)
    if lacking := await visit.services.mcp_needs.open_ones(names):
        where = f"{PAGE}/{quote(','.join(one.name for one in lacking))}/needs"
        return visit.redirect(where, f"Added: {', '.join(names)}.")
    where = f"{PAGE}/{quote(names[0])}" if len(names) == 1 else PAGE
    return visit.redirect(where, f"Added: {', '.join(names)}. Now press Find tools.")


@router.get(PAGE + "/callback")
async def callback(visit: ReauthedAdminVisit) -> Response:
    """The browser comes back from a login."""
    given = {key: value[:4_000] for key, value in visit.request.query_params.items()}
    await visit.services.end_view()
    name = await visit.services.mcp_logins.finish(visit.user, given)
    return visit.redirect(f"{PAGE}/{quote(name)}", f"Logged in to {name}.")


@router.get(PAGE + "/{server}")
async def server(visit: ReauthedAdminVisit, server: str) -> Response:
    """Its tools."""
    return await _server(visit, server)


@router.get(PAGE + "/{server}/needs")
async def needs(visit: ReauthedAdminVisit, server: str) -> Response:
    """Return what the programs of these servers, by commas, need of this machine, to be confirmed."""
    return await _needs(visit, server)


@router.post(PAGE + "/{server}/needs")
async def allow(visit: ReauthedAdminVisit, server: str) -> Response:
    """Give what is ticked."""
    ticked = [str(value) for value in (await visit.request.form()).getlist("give")]
    names = server.split(",")
    await visit.services.end_view()  # an installation takes its time
    said = []
    for name in names:
        chosen = {one.removeprefix(f"{name}|") for one in ticked if one.startswith(f"{name}|")}
        try:
            said.append(await visit.services.mcp_needs.allow(visit.user, name, chosen))
        except UserError as error:
            return await _needs(visit, server, f"{name}: {error.message}", 422)
    where = f"{PAGE}/{quote(names[0])}" if len(names) == 1 else PAGE
    return visit.redirect(where, f"{' '.join(dict.fromkeys(said))} Now press Find tools.")


async def _needs(visit: Visit, servers: str, error: str = "", status: int = 200) -> Response:
    context = NeedsContext(
        servers=await visit.services.mcp_needs.open_ones(servers.split(",")), names=servers, error=error
    )
    return await visit.show("mcp_needs.html", context, status=status)


@router.post(PAGE + "/{server}/look")
async def look(visit: ReauthedAdminVisit, server: str) -> Response:
    """Ask it for its tools now."""
    await visit.services.end_view()  # it may have to be started first
    try:
        count = await visit.services.mcp_tools.look(visit.user, server)
    except CortexError as error:
        return await _server(visit, server, error.message, status=502)
    return visit.redirect(f"{PAGE}/{quote(server)}", f"{server} has {count} tool{'' if count == 1 else 's'}.")


@router.post(PAGE + "/{server}/login")
async def login(visit: ReauthedAdminVisit, server: str) -> Response:
    """Begin a login; where it goes on is shown before the browser goes there."""
    await visit.services.end_view()
    try:
        address = await visit.services.mcp_logins.begin(visit.user, server)
    except CortexError as error:
        return await _server(visit, server, error.message, status=502)
    if not address:
        return visit.redirect(f"{PAGE}/{quote(server)}", f"{server} is already logged in.")
    return await _server(visit, server, login_at=address)


@router.post(PAGE + "/{server}")
@takes(TEXT_BYTES)
async def choose(visit: ReauthedAdminVisit, server: str) -> Response:
    """Allow the ticked tools, as they were shown, and none of the others that were shown."""
    form = await visit.request.form()
    allowed = {str(value) for value in form.getlist("allow")}
    choices = []
    for value in map(str, form.getlist("shown")):
        digest, _, name = value.partition(":")
        words = str(form.get(f"words-{digest}", ""))
        choices.append(Choice(name=name, digest=digest, is_allowed=value in allowed, words=words))
    try:
        count = await visit.services.mcp_tools.choose(visit.user, server, choices)
    except CortexError as error:
        return await _server(visit, server, error.message, status=error.status)
    said = (
        f"{count} tool{'' if count == 1 else 's'} changed, from the next message on." if count else "Nothing changed."
    )
    return visit.redirect(f"{PAGE}/{quote(server)}", said)


async def _list(visit: Visit, pasted: str = "", refused: CortexError | None = None) -> Response:
    context = ServersContext(servers=await _lines(visit.services), pasted=pasted)
    return await visit.show("mcp_servers.html", context, refused=refused)


async def _server(visit: Visit, name: str, error: str = "", *, login_at: str = "", status: int = 200) -> Response:
    row = await visit.services.mcp_tools.server(name)
    line = next(one for one in await _lines(visit.services) if one.name == row.name)
    needs = await visit.services.mcp_needs.of(row.name)
    context = ServerContext(
        line=line,
        needs=needs if needs and needs.is_open else None,
        tools=[_choice(one) for one in await visit.services.mcp_tools.tools(row.name)],
        has_login=bool(row.settings.get("has_login")),
        error=error,
        login_at=login_at,
        login_host=urlsplit(login_at).hostname or "",
    )
    return await visit.show("mcp_server.html", context, status=status)


async def _lines(services: Services) -> list[ServerLine]:
    found = []
    for row, tools in await services.mcp_tools.servers():
        card = await services.integrations.card(row.kind, row.name)
        found.append(
            ServerLine(
                name=row.name,
                state=card.state,
                place=str(row.settings.get("command") or row.settings.get("address")),
                allowed=sum(tool.is_in_force for tool in tools),
                count=len(tools),
                changed=sum(tool.has_changed for tool in tools),
            )
        )
    return found


def _choice(seen: SeenTool) -> ToolChoice:
    row = seen.row
    before, now = _text(row.allowed), _text(row.seen)
    is_other = row.has_changed and row.seen is not None
    lines = list(unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=1))[2:] if is_other else []
    schema = _text((row.seen or row.allowed or {}).get("inputSchema"))
    return ToolChoice(seen=seen, schema=schema, diff=lines)


def _text(value: Mapping[str, Any] | None) -> str:
    return show_hidden(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)) if value else ""
