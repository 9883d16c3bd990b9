"""`cortex encoder`: fetch the optional sentence model, and say how it stands. Opens no services."""

import asyncio
import json
from typing import Annotated

import typer

from cortex.base.errors import UserError
from cortex.base.record import as_dict
from cortex.base.start import settings_in_force
from cortex.services.tools.encoders import Encoders

encoder = typer.Typer(help="The optional sentence model, which finds tools by what words mean.", no_args_is_help=True)


@encoder.command("install")
def install(
    address: Annotated[str, typer.Option("--from", help="Another place with model.onnx and tokenizer.json.")] = "",
    model: Annotated[str, typer.Option("--model-sha256", help="Of another model than the usual one.")] = "",
    tokenizer: Annotated[str, typer.Option("--tokenizer-sha256", help="Of its tokenizer.")] = "",
) -> None:
    """Fetch the sentence model (23 MB, Apache-2.0) into HOME/encoder; what is not the pinned bytes is not kept."""
    if bool(model) != bool(tokenizer):
        raise UserError("Name both digests or neither.")
    digests = (model.lower(), tokenizer.lower()) if model else None
    folder = asyncio.run(Encoders(settings_in_force()).install(address, digests))
    typer.echo(f"It is in {folder}. Restart Cortex to use it.")
    typer.echo("See `cortex encoder status`.")


@encoder.command("status")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Try the sentence model and say how it stands; exit code 1 when there is one that cannot be used."""
    state = Encoders(settings_in_force()).state()
    if as_json:
        typer.echo(json.dumps(as_dict(state), ensure_ascii=False, indent=2))
    elif not state.is_there:
        typer.echo(
            f"None: {state.folder} has no model. Tools are chosen without one. `cortex encoder install` fetches it."
        )
    elif state.failed:
        typer.echo(f"{state.folder} cannot be used: {state.failed}.")
    else:
        typer.echo(f"{state.folder}: model {state.key}, {state.dimensions} numbers a text, {state.ms} ms a question.")
        typer.echo("It searches, and chooses among the tools of connected servers.")
        typer.echo(
            f"{state.kept:,} texts of tools are read. Choosing tools waits briefly for it, and continues without it."
        )
    if state.failed:
        raise typer.Exit(1)
