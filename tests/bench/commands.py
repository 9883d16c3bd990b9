"""`make bench ARGS="selection …"`: judges recipes and other selectors, by utterances, by cost and over a month.

The services of a home open for `--user` and `--model` alone. Progress goes to stderr, so that stdout holds the table or
the JSON alone.
"""

import asyncio
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.errors import CortexError, EncoderFailed, UserError
from cortex.base.model import ProfileName
from cortex.base.record import as_dict
from cortex.base.start import settings_in_force
from cortex.selection.index import sentence_models
from cortex.services.roles.roles import PERSONA
from cortex.services.tools.edits import with_encoder
from cortex.services.workshop.assumptions import Assumed, Whom
from cortex.storage.revisions import newest
from tests.bench import costs, files, month, recall, selection, table, verdicts
from tests.bench.external import OtherSelector
from tests.bench.frontiers import DRAWN
from tests.bench.ground import (
    DEFAULT_PROFILE,
    DEFAULT_ROLE,
    BenchGround,
    anybody,
    assumed_ground,
    ground,
    shipped_role,
)
from tests.bench.month_replay import replayed
from tests.bench.regimes import REGIMES
from tests.bench.selection import Extras

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

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
EACH_ITS_OWN = "each regime's own"


@app.command("selection")
def _selection(
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


@app.command("cost")
def _cost(
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


@app.command("recall")
def _recall(as_json: Json = False) -> None:
    """Which remembered facts go along with a message, over our own small table of people, facts and messages."""
    found = [recall.score(person) for person in recall.people()]
    if as_json:
        _say(json.dumps({"people": [as_dict(one) for one in found]}, ensure_ascii=False, indent=2))
        return
    for one in found:
        _say(one.sentence)


@app.command("month")
def _month(as_json: Json = False) -> None:
    """What learning from use brings, forgets and leaves behind, over a made-up month of one household.

    In a home of its own, which goes when it is done. Minutes of one core.
    """
    cases = files.read(files.CASES, _print_line).routing
    found = asyncio.run(replayed(month.read(), cases, ground(), _print_line))
    _say(json.dumps(asdict(found), ensure_ascii=False, indent=2) if as_json else month.told(found))


def _asked(whom: Whom) -> tuple[Assumed, BenchGround]:
    """What was assumed, and the ground that it makes; the services are opened only for an account or a model."""
    if not (whom.user or whom.model):
        assumed = anybody(whom.role or DEFAULT_ROLE, whom.profile or DEFAULT_PROFILE)
        return assumed, assumed_ground(asyncio.run(shipped_role(assumed.role)), PERSONA, assumed)

    return asyncio.run(_stored(whom if whom.user else replace(whom, role=whom.role or DEFAULT_ROLE)))


async def _stored(whom: Whom) -> tuple[Assumed, BenchGround]:
    """From a home that is only read: the version that lives there is neither started nor brought up to date."""
    settings = settings_in_force(is_looking=True, follows=False)
    async with Cortex.at_rest(settings, is_migrating=False) as cortex:
        if await cortex.runtime.db.revision() != newest():
            raise UserError(
                f"{settings.home} has no tables of this version of Cortex: start it there once, or go without."
            )
        assumed = await cortex.assumptions.of(whom)
        role = await cortex.roles.role(assumed.user, assumed.role)
        return assumed, assumed_ground(role, await cortex.roles.persona(assumed.user), assumed)


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


NAMES = tuple(sorted(str(each.name) for each in app.registered_commands))


def main(words: Sequence[str]) -> int:
    """Run one of them; what went wrong is one line on standard error and exit code 1."""
    try:
        app(words, prog_name="make bench")
    except CortexError as error:
        _print_line(f"bench: {error.message}")
        return 1
    return 0
