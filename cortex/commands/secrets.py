"""`cortex secrets`: the stored secrets by name, and a way on where the key that sealed them is lost."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from cortex.app import Cortex
from cortex.base.start import settings_in_force
from cortex.services.health.sealed import SealedValues

T = TypeVar("T")

secrets = typer.Typer(help="Stored secrets by name: list them, give up those whose key is lost.", no_args_is_help=True)


@secrets.command("list")
def list_secrets(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False) -> None:
    """Name every stored secret, and say whether the secret key opens it. None is shown."""
    values = _ask(lambda sealed: sealed.list())
    if as_json:
        typer.echo(json.dumps([{"name": one.name, "opens": one.opens} for one in values], ensure_ascii=False, indent=2))
        return
    for one in values:
        typer.echo(f"{'ok  ' if one.opens else 'LOST'}  {one.name}")
    if not values:
        typer.echo("No secret is stored.")


@secrets.command("give-up")
def give_up(names: Annotated[list[str], typer.Argument(help="Names as `cortex secrets list` prints them.")]) -> None:
    """Delete secrets that cannot be opened any more; those that can are refused."""
    _ask(lambda sealed: sealed.give_up(names))
    typer.echo(f"Deleted: {', '.join(dict.fromkeys(names))}.")


def _ask(ask: Callable[[SealedValues], Awaitable[T]]) -> T:
    """By the key as it is: none is made."""

    async def asked() -> T:
        async with Cortex.at_rest(settings_in_force(), is_migrating=False) as cortex:
            return await ask(cortex.sealed_values)

    return asyncio.run(asked())
