"""The commands of `cortex` that need neither a running daemon nor a network. `web/commands.py` adds `serve`.

Each opens the services at rest (no engine, no timers), asks one service and prints; `--json` for programs.
"""

import asyncio
import json
import shlex
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal, TypeVar

import typer

from cortex.app import Cortex, shipped_registry
from cortex.base.errors import NotFound, UserError
from cortex.base.role import ToolMode
from cortex.base.settings import load_settings
from cortex.base.start import settings_in_force
from cortex.base.user import Rank, User
from cortex.bench.ground import PROFILES
from cortex.commands.backup import backup, restore
from cortex.commands.bench import bench, train
from cortex.commands.encoder import encoder
from cortex.commands.jobs import jobs
from cortex.commands.month import all_set_up
from cortex.commands.programs import install_program
from cortex.commands.rehearse import move
from cortex.commands.secrets import secrets
from cortex.commands.tool_docs import tools_page
from cortex.commands.update import update
from cortex.selection.sentence_models import LABEL as SENTENCE_MODEL
from cortex.services.health.audit_log import MEND
from cortex.services.tools.tools import ToolsService, request_tokens
from cortex.storage.halts import EVERYBODY, OUTWARD

T = TypeVar("T")
STOPPED_LOOK_S, STOPPED_WITHIN_LOOKS = 0.1, 50

app = typer.Typer(
    name="cortex",
    help="A self-hosted assistant: one daemon, one page, tools chosen per turn and explained.",
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
app.add_typer(bench, name="bench")
app.add_typer(encoder, name="encoder")
app.add_typer(jobs, name="jobs")
app.command("train")(train)
app.command("backup")(backup)
app.command("restore")(restore)
app.command("update")(update)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Message = Annotated[str, typer.Argument(help="What a person would write.")]
RoleName = Annotated[str, typer.Option("--role", help="The role that answers.")]
RankName = Annotated[Rank, typer.Option("--rank", help="As whom: admin or member.")]
Mode = Annotated[ToolMode, typer.Option("--mode", help="Tool mode: auto, chat or all.")]
Recipe = Annotated[str, typer.Option("--recipe", help="Another way of choosing tools; empty: the role's own.")]
Configured = Annotated[bool, typer.Option("--assume-configured", help="As if every service were set up.")]
Backend = Annotated[
    Literal["anthropic", "openai", "local", "none"],
    typer.Option("--profile", help="The kind of model that is planned for: what it caches. none: it caches nothing."),
]
Name = Annotated[str, typer.Argument(help="The account's name.")]


@app.command()
def migrate(
    to: Annotated[str, typer.Option("--to", help="Another revision than the newest: for an earlier version.")] = "",
    undo: Annotated[bool, typer.Option("--undo", hidden=True)] = False,
) -> None:
    """Bring the database's tables up to date."""
    if to:
        _say(f"The tables are at {asyncio.run(move(settings_in_force(), to, undo=undo))}.")
        return
    _say(f"The tables are at {_at_rest(lambda cortex: cortex.runtime.db.migrate())}.")


@app.command()
def doctor(as_json: Json = False) -> None:
    """Say what is wrong here and how to mend it; exit code 1 when something is."""
    found = _at_rest(lambda cortex: cortex.doctor.examine(), is_migrating=False)
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
    for line in _at_rest(lambda cortex: _stop_all(cortex, user, outward, release)):
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
    verdict = _at_rest(lambda cortex: cortex.audit_log.verify(head))
    if as_json:
        _print_json(asdict(verdict))
    elif verdict.problem:
        _say(f"BAD   row {verdict.at}: {verdict.problem}\n      {MEND}")
    else:
        _say(f"ok    {verdict.entries} rows, none changed. Head: {verdict.head}")
    if verdict.problem:
        raise typer.Exit(1)


@audit.command("accept")
def accept_audit() -> None:
    """Take the audit log as it stands, after a backup was put back; the log itself notes it."""
    _say(f"Its head is now {_at_rest(lambda cortex: cortex.audit_log.accept())}")


@people.command("setup-link")
def setup_link() -> None:
    """Print a fresh link that makes the first admin, good for 15 minutes."""
    _say(_link("setup", _at_rest(lambda cortex: cortex.accounts.setup_link())))


@people.command("add")
def add(
    name: Name,
    is_admin: Annotated[bool, typer.Option("--admin", help="May also change what holds for everybody.")] = False,
    password_from_input: Annotated[bool, typer.Option("--password-stdin", help="Read it from the first line.")] = False,
) -> None:
    """Add a person; prints the link that sets their password, unless one is given."""
    password = sys.stdin.readline().rstrip("\n") if password_from_input else None
    rank: Rank = "admin" if is_admin else "member"
    invited = _at_rest(lambda cortex: cortex.accounts.add_user(name, rank, password))
    _say(f"{invited.user.name} is added as {rank}.")
    if invited.token:
        _say(f"They choose their password, within a day, at {_link('welcome', invited.token)}")


@people.command("reset")
def reset(name: Name) -> None:
    """Print a link that gives this account another password and ends its logins."""
    _say(_link("welcome", _at_rest(lambda cortex: cortex.accounts.reset(name))))


@people.command("list")
def list_people(as_json: Json = False) -> None:
    """List the accounts."""
    accounts = _at_rest(lambda cortex: cortex.accounts.all_accounts())
    rows = [{"name": one.name, "rank": one.rank, "is_active": one.is_active} for one in accounts]
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        _say(f"{row['name']}  {row['rank']}" + ("" if row["is_active"] else "  (off)"))
    if not rows:
        _say("No account yet: cortex user setup-link")


@app.command()
def explain(
    message: Message,
    role: RoleName = "orchestrator",
    recipe: Recipe = "",
    mode: Mode = "auto",
    rank: RankName = "admin",
    profile: Backend = "none",
    assume_configured: Configured = False,
    as_json: Json = False,
) -> None:
    """Show which tools this message would be given, and why. No model is asked."""
    receipt = _explained(message, role, recipe, mode, rank, profile, assume_configured)
    if as_json:
        _print_json({**receipt, "profile": profile})
        return
    saved = receipt["saved"]
    _say(
        f"{len(receipt['sent'])} of {receipt['permitted']} tools, {receipt['tokens']:,} tokens a round, {saved:,} saved"
    )
    for one in receipt["sent"]:
        _say(f"  {one['name']:<24} {one['form']:<6} {one['tokens']:>5}  {one['reason']}")
    for one in receipt["decisions"]:
        if not one["is_in"]:
            _say(f"  {one['name']:<24} out          {one['reason']}")
    _say(f"planned for a model of profile {profile}")
    if SENTENCE_MODEL in receipt["labels"]:
        _say(f"{SENTENCE_MODEL} {receipt['labels'][SENTENCE_MODEL]}")


@app.command("prompt-size")
def prompt_size(
    message: Message,
    role: RoleName = "orchestrator",
    recipe: Recipe = "",
    mode: Mode = "auto",
    rank: RankName = "admin",
    profile: Backend = "none",
    assume_configured: Configured = False,
    as_json: Json = False,
) -> None:
    """Count the tokens of the exact first request that this message makes."""
    parts = request_tokens(_explained(message, role, recipe, mode, rank, profile, assume_configured))
    if as_json:
        _print_json({**parts, "profile": profile})
        return
    for name, count in parts.items():
        _say(f"{name:<12} {count:>6,}")
    _say(f"{'profile':<12} {profile}")


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


def _at_rest(ask: Callable[[Cortex], Awaitable[T]], *, is_migrating: bool = True) -> T:
    """Ask the server without starting it."""

    async def asked() -> T:
        settings = settings_in_force(is_looking=not is_migrating)
        async with Cortex.at_rest(settings, is_migrating=is_migrating) as cortex:
            return await ask(cortex)

    return asyncio.run(asked())


def _explained(
    message: str, role: str, recipe: str, mode: ToolMode, rank: Rank, profile: str, assume_configured: bool
) -> dict[str, Any]:
    """The receipt of the message as the first of a new conversation."""
    backend = PROFILES[profile]
    return _of_role(
        rank,
        role,
        assume_configured,
        lambda tools, user: tools.explain(user, role, message, mode=mode, recipe=recipe, profile=backend),
    )


def _of_role(rank: Rank, role: str, assume_configured: bool, ask: Callable[[ToolsService, User], Awaitable[T]]) -> T:
    """Ask the tools, as somebody of this rank, of a role that there is, or of none ("")."""

    async def asked(cortex: Cortex) -> T:
        user = _somebody(rank)
        names = await cortex.roles.names(user)
        if role and role not in names:
            raise UserError(f"There is no role {role!r} for a person of rank {rank}; there are {', '.join(names)}.")
        return await ask(_tools(cortex, assume_configured), user)

    return _at_rest(asked)


def _tools(cortex: Cortex, assume_configured: bool) -> ToolsService:
    """The tools as they are set up here, or as if all were."""
    return all_set_up(cortex) if assume_configured else cortex.tools


def _somebody(rank: Rank) -> User:
    """A person without files and preferences of their own, so that what is shown is what ships."""
    return User(id="somebody", name="somebody", rank=rank)


def _link(page: str, token: str) -> str:
    settings = load_settings()
    place = settings.public_url or f"http://{settings.page_host}:{settings.port}"
    return f"{place}/{page}#{token}"


def _print_json(value: Any) -> None:  # Any: whatever JSON can say
    _say(json.dumps(value, ensure_ascii=False, indent=2))


def _say(line: str) -> None:
    typer.echo(line)
