"""`cortex tools install`: programs of others that tools use, each in an environment of its own. Opens no services."""

from typing import Annotated

import typer

from cortex.base.errors import UserError
from cortex.base.start import settings_in_force
from cortex.integrations.aider.installing import install
from cortex.integrations.aider.system import place_of

NAMES = ("aider",)


def install_program(
    name: Annotated[str, typer.Argument(help="Which one: aider, the coding agent (0.5 GB).")],
    python: Annotated[str, typer.Option("--python", help="Python 3.10 to 3.12; empty: that of Cortex.")] = "",
) -> None:
    """Install a program that tools use into HOME/programs, pinned by digests."""
    if name not in NAMES:
        raise UserError(f"Unknown program {name!r}. Available: {', '.join(NAMES)}.")
    program = install(place_of(settings_in_force().home), python, typer.echo)
    typer.echo(f"{program} is there. Set the coding agent up under Integrations; no restart is needed.")
