"""The commands of `cortex` that need neither a running daemon nor a network. `web/commands.py` adds `serve`.

Each opens the services at rest (no engine, no timers), asks one service and prints; `--json` for programs.
"""

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from cortex import VERSION
from cortex.app import Cortex, shipped_registry
from cortex.base.errors import NotFound
from cortex.base.record import as_dict
from cortex.base.start import settings_in_force
from cortex.base.user import Rank, User
from cortex.commands.at_rest import at_rest
from cortex.commands.backup import backup, restore
from cortex.commands.doctor import examine
from cortex.commands.encoder import encoder
from cortex.commands.jobs import jobs
from cortex.commands.planned import Configured, Json, explain, prompt_size, tools_of
from cortex.commands.programs import install_program
from cortex.commands.rehearse import move
from cortex.commands.secrets import secrets
from cortex.commands.server_settings import settings as server_settings
from cortex.commands.tool_docs import tools_page
from cortex.commands.train import train
from cortex.commands.update import update
from cortex.services.health.audit_log import MEND
from cortex.services.tools.tools import ToolsService
from cortex.services.workshop.assumptions import Whom
from cortex.storage.halts import EVERYBODY, OUTWARD

T = TypeVar("T")
STOPPED_LOOK_S, STOPPED_WITHIN_LOOKS = 0.1, 50

app = typer.Typer(
    name="cortex",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
people = typer.Typer(help="Accounts: add, list, reset a password, print the set-up link.", no_args_is_help=True)
audit = typer.Typer(help="The audit log: verify its chain, accept it as it is.", no_args_is_help=True)
tools = typer.Typer(invoke_without_command=True)
tools.command("install")(install_program)
app.add_typer(tools, name="tools")
app.add_typer(people, name="user")
app.add_typer(audit, name="audit")
app.add_typer(secrets, name="secrets")
app.add_typer(server_settings, name="settings")
app.add_typer(encoder, name="encoder")
app.add_typer(jobs, name="jobs")
app.command()(explain)
app.command("prompt-size")(prompt_size)
app.command("train")(train)
app.command("backup")(backup)
app.command("restore")(restore)
app.command("update")(update)

RankName = Annotated[Rank, typer.Option("--rank", help="As whom: admin or member.")]
Name = Annotated[str, typer.Argument(help="The account's name.")]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"Cortex {VERSION}")
        raise typer.Exit


@app.callback()
def whole(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and leave.")
    ] = False,
) -> None:
    """A self-hosted assistant: one daemon, one page, tools chosen per turn and explained."""


@app.command()
def migrate(
    to: Annotated[str, typer.Option("--to", help="Another revision than the newest: for an earlier version.")] = "",
    undo: Annotated[bool, typer.Option("--undo", hidden=True)] = False,
) -> None:
    """Bring the database's tables up to date."""
    if to:
        _say(f"The tables are at {asyncio.run(move(settings_in_force(), to, undo=undo))}.")
        return
    _say(f"The tables are at {at_rest(lambda cortex: cortex.runtime.db.migrate())}.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is wrong here and how to mend it; exit code 1 when something is."""
    found = at_rest(examine, is_migrating=False)
    if as_json:
        _print_json([one.to_dict() for one in found])
    else:
        for one in found:
            mark = {"good": "ok  ", "warn": "note", "bad": "BAD ", "unset": "-   "}[one.state]
            _say(f"{mark}  {one.name}: {one.text}" + (f"\n      {one.mend}" if one.mend else ""))
    if any(one.state == "bad" for one in found):
        raise typer.Exit(1)


@app.command("stop-all")
def stop_all(
    user: Annotated[str, typer.Option("--user", help="Only this person's work; empty: everybody's.")] = "",
    outward: Annotated[bool, typer.Option("--outward", help="Only switch the tools off that reach outside.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Lift it: what waits begins.")] = False,
) -> None:
    """Stop every turn, job, agent and shell at once; nothing starts until it is lifted."""
    for line in at_rest(lambda cortex: _stop_all(cortex, user, outward, release)):
        _say(line)


async def _stop_all(cortex: Cortex, name: str, is_outward: bool, is_release: bool) -> list[str]:
    whom = await cortex.accounts.named(name) if name else None
    stops = cortex.stop_all
    if is_release:
        scope = OUTWARD if is_outward else whom.id if whom else EVERYBODY
        found = await stops.all(None)
        left = [f"{one.what}. {one.meaning} Lift it: {one.command}" for one in found if one.scope != scope]
        if left and len(left) == len(found):
            raise NotFound("\n".join(["That is not stopped. What is:", *left]))
        await stops.lift(None, scope)
        return ["Lifted.", *left] if left else ["Lifted: nothing is stopped any more."]
    if is_outward:
        await stops.switch_outward_off(None)
        return ["Tools that reach outside are switched off. Lift it: cortex stop-all --outward --release"]
    await stops.order(None, whom)
    again = f"Lift it: cortex stop-all{f' --user {shlex.quote(whom.name)}' if whom else ''} --release"
    for _ in range(STOPPED_WITHIN_LOOKS):
        if not await stops.running():
            return [f"Everything is stopped {f'for {whom.name}' if whom else 'for everybody'}. {again}"]
        await asyncio.sleep(STOPPED_LOOK_S)
    return [f"Stopped. Not ended yet: {await stops.running()} of the turns; no daemon may be running here. {again}"]


@audit.command("verify")
def verify_audit(
    head: Annotated[str, typer.Option("--head", help="Also hold it against this head, from a notification.")] = "",
    as_json: Json = False,
) -> None:
    """Check every row of the audit log and its head; exit code 1 when a row was changed, put in, cut or rewritten."""
    verdict = at_rest(lambda cortex: cortex.audit_log.verify(head))
    if as_json:
        _print_json(as_dict(verdict))
    elif verdict.problem:
        _say(f"BAD   row {verdict.at}: {verdict.problem}\n      {MEND}")
    else:
        _say(f"ok    {verdict.entries} rows, none changed. Head: {verdict.head}")
        if verdict.doubt:
            _say(f"      {verdict.doubt}")
    if verdict.problem:
        raise typer.Exit(1)


@audit.command("accept")
def accept_audit() -> None:
    """Take the audit log as it stands, after a backup was put back; the log itself notes it."""
    _say(f"Its head is now {at_rest(lambda cortex: cortex.audit_log.accept())}")


@people.command("setup-link")
def setup_link() -> None:
    """Print a fresh link that makes the first admin, good for 15 minutes."""
    _say(at_rest(_setup_link))


@people.command("add")
def add(
    name: Name,
    is_admin: Annotated[bool, typer.Option("--admin", help="May also change what holds for everybody.")] = False,
    password_from_input: Annotated[bool, typer.Option("--password-stdin", help="Read it from the first line.")] = False,
) -> None:
    """Add a person; prints the link that sets their password, unless one is given."""
    password = sys.stdin.readline().rstrip("\n") if password_from_input else None
    rank: Rank = "admin" if is_admin else "member"
    for line in at_rest(lambda cortex: _add(cortex, name, rank, password)):
        _say(line)


@people.command("reset")
def reset(name: Name) -> None:
    """Print a link for another password; when used, logins, tokens, devices, job addresses and permissions end."""
    _say(at_rest(lambda cortex: _reset_link(cortex, name)))


@people.command("list")
def list_people(as_json: Json = False) -> None:
    """List the accounts."""
    accounts = at_rest(lambda cortex: cortex.accounts.all_accounts())
    rows = [{"name": one.name, "rank": one.rank, "is_active": one.is_active} for one in accounts]
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        _say(f"{row['name']}  {row['rank']}" + ("" if row["is_active"] else "  (off)"))
    if not rows:
        _say("No account yet: cortex user setup-link")


@tools.callback()
def list_tools(
    called: typer.Context,
    role: Annotated[str, typer.Option("--role", help="Only what this role may use; empty: all.")] = "",
    rank: RankName = "admin",
    assume_configured: Configured = False,
    as_json: Json = False,
    as_page: Annotated[bool, typer.Option("--markdown", help="Print docs/tools.md: what each may do.")] = False,
) -> None:
    """List every tool with its risk, its price in tokens and what it still needs."""
    if called.invoked_subcommand:
        return
    if as_page:
        sys.stdout.write(tools_page(shipped_registry()))
        return

    async def listed(tools: ToolsService, user: User) -> list[dict[str, Any]]:
        rows = await tools.listing()
        permitted = await tools.permitted(user, role) if role else {row["name"] for row in rows}
        return [row for row in rows if row["name"] in permitted]

    rows = _of_role(rank, role, assume_configured, listed)
    if as_json:
        _print_json(rows)
        return
    _say(f"{'category':<14} {'tool':<26} {'risk':<7} {'full':>5} {'stub':>5}  (tokens in full and as a stub)")
    for row in rows:
        marks = [name for name in ("admin", "confirm") if row[name]]
        marks += [row["setup"]["text"]] if "setup" in row else []
        price = f"{row['tokens_full']:>5} {row['tokens_stub']:>5}"
        _say(f"{row['category']:<14} {row['name']:<26} {row['risk']:<7} {price}  {', '.join(marks)}".rstrip())


def _of_role(rank: Rank, role: str, assume_configured: bool, ask: Callable[[ToolsService, User], Awaitable[T]]) -> T:
    """Ask the tools, as somebody of this rank, of a role that there is, or of none ("")."""

    async def asked(cortex: Cortex) -> T:
        assumed = await cortex.assumptions.of(Whom(rank=rank, role=role))
        return await ask(tools_of(cortex, assume_configured=assume_configured), assumed.user)

    return at_rest(asked)


async def _setup_link(cortex: Cortex) -> str:
    return _link(cortex, "setup", await cortex.accounts.setup_link())


async def _reset_link(cortex: Cortex, name: str) -> str:
    return _link(cortex, "welcome", await cortex.accounts.reset(name))


async def _add(cortex: Cortex, name: str, rank: Rank, password: str | None) -> list[str]:
    invited = await cortex.accounts.add_user(name, rank, password)
    lines = [f"{invited.user.name} is added as {rank}."]
    if invited.token:
        lines.append(f"They choose their password, within a day, at {_link(cortex, 'welcome', invited.token)}")
    return lines


def _link(cortex: Cortex, page: str, token: str) -> str:
    settings = cortex.settings
    place = settings.public_url or f"http://{settings.page_host}:{settings.port}"
    return f"{place}/{page}#{token}"


def _print_json(value: Any) -> None:  # Any: whatever JSON can say
    _say(json.dumps(value, ensure_ascii=False, indent=2))


def _say(line: str) -> None:
    typer.echo(line)
