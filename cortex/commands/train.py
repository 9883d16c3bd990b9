"""`cortex train`: fits the model that chooses tools on the shipped utterances, or says whether the weights are current.

Progress goes to stderr, so that stdout holds the report alone.
"""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from cortex.app import shipped_registry
from cortex.base import memory
from cortex.base.model import PROFILES
from cortex.commands import training
from cortex.selection.model import weights
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import PlanInput
from cortex.services.roles.roles import Roles
from cortex.services.tools.plans import role_view
from cortex.services.workshop.assumptions import SOMEBODY

ROLE, BACKEND = "admin", PROFILES["anthropic"]  # who is permitted everything, behind a model that caches
Out = Annotated[Path | None, typer.Option("--out", help="Where the weights go; none: where they are shipped from.")]
Check = Annotated[bool, typer.Option("--check", help="Fit nothing: say whether the weights are current.")]


def train(out: Out = None, is_check: Check = False) -> None:
    """Fit the model that chooses tools on the utterances that ship; half a minute of a processor.

    The same utterances give the same file on the same machine. Every figure is of utterances that were left out.
    """
    path: Path = out or weights.SHIPPED
    if is_check:
        _check(path)
    else:
        fitted(path)


def _check(path: Path) -> None:
    """Say that the file is old and why, and exit with 1; nothing where it is current."""
    why = training.stale(snapshot_of(shipped_registry()), path.read_bytes() if path.is_file() else b"")
    if why:
        _print_line(f"{path.name} is old: {why}. {training.MEND}.")
        raise typer.Exit(1)


def fitted(path: Path) -> training.TrainingResult:
    """The model fitted anew and judged: prints the report and writes the weights here, as a whole or not."""
    _print_line("fitting …")
    found = training.trained(_first())
    typer.echo(training.report(found))
    memory.replace(path, weights.to_bytes(found.fitted.weights))
    return found


def _first() -> PlanInput:
    """The first round of a conversation, every shipped tool set up and permitted."""
    snapshot = snapshot_of(shipped_registry())
    return PlanInput(
        snapshot=snapshot,
        ready=tuple(entry.name for entry in snapshot.entries),
        role=role_view(asyncio.run(Roles(shipped_registry()).role(SOMEBODY, ROLE))),
        is_admin=True,
        message="",
        recipe="cortex",
        profile=BACKEND,
    )


def _print_line(line: str) -> None:
    typer.echo(line, err=True)
