"""`cortex bench` judges recipes by utterances and by cost; `cortex train` fits. Services open for `--user`, `--model`.

Progress goes to stderr, so that stdout holds the table or the JSON alone.
"""

import asyncio
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cortex.agent.prompt import system_prompt, tail, with_tail
from cortex.agent.toolless import as_text
from cortex.app import Cortex, shipped_registry
from cortex.base import scan
from cortex.base.errors import EncoderFailed, UserError
from cortex.base.role import Role
from cortex.bench import costs, files, month, recall, selection, table, training, verdicts
from cortex.bench.external import OtherSelector
from cortex.bench.frontiers import DRAWN
from cortex.bench.ground import DEFAULT_PROFILE, BenchGround, BenchWords
from cortex.bench.regimes import REGIMES
from cortex.bench.selection import Extras
from cortex.commands.at_rest import at_rest
from cortex.commands.month import replayed
from cortex.selection import lacks_tool, sentence_models
from cortex.selection.cache_profiles import ProfileName
from cortex.selection.edits import with_encoder
from cortex.selection.snapshot import snapshot_of
from cortex.services.roles.roles import PERSONA, Roles
from cortex.services.tools.plans import past_turns, role_view
from cortex.services.workshop.assumptions import SOMEBODY, Assumed, Whom, profile_named, unnamed

bench = typer.Typer(help="Judge the ways of choosing tools.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Recipes = Annotated[list[str] | None, typer.Option("--recipe", help="Once for each recipe; none: all of them.")]
Data = Annotated[
    list[Path] | None, typer.Option("--data", help="A file or folder of rows, may be repeated; none: our own cases.")
]
RoleName = Annotated[str, typer.Option("--role", help="The role that asks; empty: the account's, or admin.")]
Person = Annotated[str, typer.Option("--user", help="With this account's rights and its role; empty: any admin.")]
ModelName = Annotated[
    str, typer.Option("--model", help="For this configured model: what it caches, how much it takes.")
]
Backend = Annotated[
    ProfileName | None,
    typer.Option("--profile", help="The kind of model that is planned for; none: the model's, or one that caches."),
]
OtherBackend = Annotated[
    ProfileName | None, typer.Option("--profile", help="The kind of model in place of each regime's own.")
]
Regimes = Annotated[list[str] | None, typer.Option("--regime", help=f"Of {', '.join(REGIMES)}; none: all of them.")]
Seed = Annotated[int, typer.Option("--seed", help="Of what is made up and drawn.")]
Out = Annotated[Path | None, typer.Option("--out", help="Where the weights go; none: where they are shipped from.")]
Check = Annotated[bool, typer.Option("--check", help="Fit nothing: say whether the weights are current.")]
Encoder = Annotated[
    Path | None, typer.Option("--encoder", help="A folder with model.onnx and tokenizer.json: choose by meaning too.")
]
Selector = Annotated[
    str, typer.Option("--selector", help="A program to judge beside cortex or the named recipes (docs/bench.md).")
]
HeldOut = Annotated[
    list[str] | None, typer.Option("--held-out", help="A file, without its ending, that nothing was ever chosen by.")
]
Made = Annotated[
    bool, typer.Option("--made", help="Also typos, speech, long and several requests, and tools that nobody knows.")
]
Frontier = Annotated[
    bool, typer.Option("--frontier", help="Also the figures at other settings: thresholds, or more tools always sent.")
]
Stages = Annotated[bool, typer.Option("--stages", help="Also cortex without each of its stages, on our own cases.")]
Categories = Annotated[bool, typer.Option("--categories", help="Also the figures of each category.")]
SEED = 20261121
DEFAULT_ROLE = "admin"
EACH_ITS_OWN = "each regime's own"


@bench.command("selection")
def bench_selection(
    data: Data = None,
    recipe: Recipes = None,
    role: RoleName = "",
    user: Person = "",
    model: ModelName = "",
    profile: Backend = None,
    seed: Seed = SEED,
    encoder: Encoder = None,
    selector: Selector = "",
    held_out: HeldOut = None,
    made: Made = False,
    frontier: Frontier = False,
    stages: Stages = False,
    categories: Categories = False,
    as_json: Json = False,
) -> None:
    """Recall, tools, tokens and latency of each recipe over files of utterances and tool catalogues.

    Every tool counts as set up. The backend is by default one that caches as Anthropic does.
    """
    assumed, over = _asked(Whom(user=user, role=role, model=model, profile=profile or ""))
    if encoder:
        over = over.over(with_encoder(over.snapshot, sentence_model(encoder)))
    extras = Extras(
        has_made=made,
        drawn=DRAWN if frontier else (),
        has_ablation=stages,
        held_out=tuple(held_out or ()),
        other=_selector(selector) if selector else None,
    )
    names = recipe or (("cortex",) if selector else ())
    sets = selection.measured(data or (files.CASES,), names, over, seed, _print_line, extras)
    if as_json:
        _say(json.dumps({"sets": sets, **assumed.facts}, ensure_ascii=False, indent=2))
        return
    _say(assumed.sentence)
    _say(table.selection(sets, has_categories=categories, is_by_meaning=encoder is not None))
    _say_all(verdicts.selection(sets))


@bench.command("cost")
def bench_cost(
    regime: Regimes = None,
    recipe: Recipes = None,
    role: RoleName = "",
    user: Person = "",
    model: ModelName = "",
    profile: OtherBackend = None,
    seed: Seed = SEED,
    as_json: Json = False,
) -> None:
    """What scripted conversations cost under each recipe, as a share of sending all tools (100), by regime.

    A request costs c x what the cache holds of it + w x the rest + its output (a simulated cache, the real planner).
    """
    assumed, over = _asked(Whom(user=user, role=role, model=model, profile=profile or ""))
    backend = assumed.entry.profile if model or profile else None
    found = costs.measured(regime or (), recipe or (), over, seed, _print_line, backend=backend)
    facts = assumed.facts if backend else {**assumed.facts, "profile": EACH_ITS_OWN}
    if as_json:
        _say(json.dumps({**found, **facts}, ensure_ascii=False, indent=2))
        return
    _say(assumed.sentence if backend else f"{assumed.sentence} Each regime has a backend of its own in place of it.")
    _say(table.costs(found))
    _say_all(verdicts.costs(found))


@bench.command("recall")
def bench_recall(as_json: Json = False) -> None:
    """Which remembered facts go along with a message, over our own small table of people, facts and messages."""
    found = [recall.score(person) for person in recall.people()]
    if as_json:
        _say(json.dumps({"people": [asdict(one) for one in found]}, ensure_ascii=False, indent=2))
        return
    for one in found:
        _say(one.sentence)


@bench.command("month")
def bench_month(as_json: Json = False) -> None:
    """What learning from use brings, forgets and leaves behind, over a made-up month of one household.

    In a home of its own, which goes when it is done. Minutes of one core.
    """
    cases = files.read(files.CASES, _print_line).routing
    found = asyncio.run(replayed(month.read(), cases, ground("admin", DEFAULT_PROFILE), _print_line))
    _say(json.dumps(asdict(found), ensure_ascii=False, indent=2) if as_json else month.told(found))


def train(out: Out = None, is_check: Check = False) -> None:
    """Fit the model that chooses tools on the utterances that ship; half a minute of a processor.

    The same utterances give the same file on the same machine. Every figure is of utterances that were left out.
    """
    path: Path = out or scan.load("cortex.selection.weights").SHIPPED
    if is_check:
        _check(path)
    else:
        fitted(path)


def _check(path: Path) -> None:
    """Say that the file is old and why, and exit with 1; nothing where it is current."""
    why = training.stale(ground("admin", DEFAULT_PROFILE).snapshot, _read(path))
    if why:
        _print_line(f"{path.name} is old: {why}. {training.MEND}.")
        raise typer.Exit(1)


def fitted(path: Path) -> training.TrainingResult:
    """The model fitted anew and judged: prints the report and writes the weights here, as a whole or not."""
    _print_line("fitting …")
    found = training.trained(ground("admin", DEFAULT_PROFILE))
    _say(training.report(found))
    _write(path, scan.load("cortex.selection.weights").to_bytes(found.fitted.weights))
    _write(path.with_name(lacks_tool.FILE.name), scan.load("cortex.bench.answers").fitted())  # what is no answer
    return found


def _read(path: Path) -> bytes:
    """The bytes of the file; none where there is no such file."""
    return path.read_bytes() if path.is_file() else b""


def _write(path: Path, data: bytes) -> None:
    """The file as a whole, or as it was."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)


def ground(role_name: str, profile: str) -> BenchGround:
    """The shipped registry and the shipped role, whatever is set up here; UserError for an unknown name."""
    return _ground(asyncio.run(_role(role_name)), PERSONA, _shipped(role_name, profile))


def _ground(role: Role, persona: str, assumed: Assumed) -> BenchGround:
    """The shipped registry behind this role, person and model."""
    words = BenchWords(
        system=partial(system_prompt, persona, role.prompt),
        tail=lambda moment, number, notes: tail(moment, "UTC", round_number=number, notes=notes),
        with_tail=with_tail,
        as_text=as_text,
        past_turns=past_turns,
    )
    snapshot = snapshot_of(shipped_registry())
    bare = BenchGround(
        snapshot=snapshot,
        role=role_view(role),
        is_admin=assumed.user.is_admin,
        profile=assumed.entry.profile,
        window_tokens=assumed.entry.context_tokens,
        words=words,
    )
    return bare.over(snapshot)


def _asked(whom: Whom) -> tuple[Assumed, BenchGround]:
    """What was assumed, and the ground that it makes; the services are opened only for an account or a model."""
    if not (whom.user or whom.model):
        assumed = _shipped(whom.role or DEFAULT_ROLE, whom.profile or DEFAULT_PROFILE)
        return assumed, _ground(asyncio.run(_role(assumed.role)), PERSONA, assumed)

    async def stored(cortex: Cortex) -> tuple[Assumed, Role, str]:
        found = await cortex.assumptions.of(whom if whom.user else replace(whom, role=whom.role or DEFAULT_ROLE))
        role = await cortex.roles.role(found.user, found.role)
        return found, role, await cortex.roles.persona(found.user)

    assumed, role, persona = at_rest(stored)
    return assumed, _ground(role, persona, assumed)


def _shipped(role_name: str, profile: str) -> Assumed:
    """Any admin in this role, with a model of this profile."""
    return Assumed(user=SOMEBODY, is_person=False, role=role_name, mode="auto", entry=unnamed(profile_named(profile)))


async def _role(name: str) -> Role:
    """The role as it ships; UserError for a name that nobody wrote."""
    roles = Roles()
    names = await roles.names(SOMEBODY)
    if name not in names:
        raise UserError(f"There is no role {name!r}; known: {', '.join(names)}.")
    return await roles.role(SOMEBODY, name)


def sentence_model(folder: Path) -> str:
    """The key of the sentence model in this folder, which also keeps what it has read; UserError without one."""
    found = scan.load("cortex.integrations.sentences").Sentences(folder, folder, limit_s=None)
    try:
        sentence_models.register(found)
    except EncoderFailed as error:
        raise UserError(f"{folder} cannot be used: {error.message}.") from error
    key: str = found.key
    return key


def _selector(command: str) -> OtherSelector:
    """The program of this command line; UserError for one that no shell would read."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UserError(f"{command!r} is no command line: {error}.") from error
    if not words:
        raise UserError("Say which program chooses the tools.")
    return OtherSelector(command=words)


def _say(line: str) -> None:
    typer.echo(line)


def _say_all(lines: Sequence[str]) -> None:
    _say("\n" + "\n".join(lines))


def _print_line(line: str) -> None:
    typer.echo(line, err=True)
