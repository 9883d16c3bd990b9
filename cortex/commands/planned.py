"""`cortex explain` and `cortex prompt-size`: what a message would be given and would weigh. No model is asked."""

import json
from typing import Annotated, Any

import typer

from cortex.app import Cortex
from cortex.base.role import ToolMode
from cortex.base.user import Rank
from cortex.commands.at_rest import at_rest
from cortex.selection.cache_profiles import ProfileName
from cortex.selection.sentence_models import LABEL as SENTENCE_MODEL
from cortex.services.models.profiles import in_words
from cortex.services.tools.tools import ToolsService, request_tokens
from cortex.services.workshop.assumptions import Assumed, Whom

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Message = Annotated[str, typer.Argument(help="What a person would write.")]
RoleName = Annotated[str, typer.Option("--role", help="The role that answers; empty: the person's, or orchestrator.")]
RankName = Annotated[
    Rank | None, typer.Option("--rank", help="As whom: admin or member; none: the person's, or admin.")
]
Mode = Annotated[
    ToolMode | None, typer.Option("--mode", help="Tool mode: auto, chat or all; none: the person's, or auto.")
]
Recipe = Annotated[str, typer.Option("--recipe", help="Another way of choosing tools; empty: the role's own.")]
Configured = Annotated[bool, typer.Option("--assume-configured", help="As if every service were set up.")]
Person = Annotated[
    str, typer.Option("--user", help="With this account's rights, settings and models; empty: somebody new.")
]
ModelName = Annotated[
    str, typer.Option("--model", help="For this configured model: what it caches, how much it takes.")
]
Backend = Annotated[
    ProfileName | None,
    typer.Option("--profile", help="The kind of model that is planned for: what it caches. none: it caches nothing."),
]


def explain(
    message: Message,
    user: Person = "",
    rank: RankName = None,
    role: RoleName = "",
    model: ModelName = "",
    profile: Backend = None,
    recipe: Recipe = "",
    mode: Mode = None,
    assume_configured: Configured = False,
    as_json: Json = False,
) -> None:
    """Show which tools this message would be given, and why. No model is asked."""
    whom = Whom(user=user, rank=rank, role=role, mode=mode, model=model, profile=profile or "")
    assumed, receipt = _explained(message, whom, recipe, assume_configured)
    if as_json:
        _print_json({**receipt, **assumed.facts})
        return
    saved = receipt["saved"]
    typer.echo(
        f"{len(receipt['sent'])} of {receipt['permitted']} tools, {receipt['tokens']:,} tokens a round, {saved:,} saved"
    )
    for one in receipt["sent"]:
        typer.echo(f"  {one['name']:<24} {one['form']:<6} {one['tokens']:>5}  {one['reason']}")
    for one in receipt["decisions"]:
        if not one["is_in"]:
            typer.echo(f"  {one['name']:<24} out          {one['reason']}")
    typer.echo(f"{assumed.sentence} {in_words(assumed.entry.profile)}")
    if SENTENCE_MODEL in receipt["labels"]:
        typer.echo(f"{SENTENCE_MODEL} {receipt['labels'][SENTENCE_MODEL]}")


def prompt_size(
    message: Message,
    user: Person = "",
    rank: RankName = None,
    role: RoleName = "",
    model: ModelName = "",
    profile: Backend = None,
    recipe: Recipe = "",
    mode: Mode = None,
    assume_configured: Configured = False,
    as_json: Json = False,
) -> None:
    """Count the tokens of the exact first request that this message makes."""
    whom = Whom(user=user, rank=rank, role=role, mode=mode, model=model, profile=profile or "")
    assumed, receipt = _explained(message, whom, recipe, assume_configured)
    parts = request_tokens(receipt)
    if as_json:
        _print_json({**parts, **assumed.facts})
        return
    for name, count in parts.items():
        typer.echo(f"{name:<12} {count:>6,}")
    typer.echo(f"{assumed.sentence} {in_words(assumed.entry.profile)}")


def tools_of(cortex: Cortex, *, assume_configured: bool) -> ToolsService:
    """The tools as they are set up here, or as if all were."""
    if not assume_configured:
        return cortex.tools
    runtime = cortex.runtime
    return ToolsService(
        registry=runtime.registry,
        wired=cortex.wired,
        roles=cortex.roles,
        clock=runtime.clock,
        settings=cortex.tool_settings,
        encoders=cortex.encoders,
        assume_configured=True,
    )


def _explained(message: str, whom: Whom, recipe: str, assume_configured: bool) -> tuple[Assumed, dict[str, Any]]:
    """What was assumed, and the receipt of the message as the first of a new conversation."""

    async def asked(cortex: Cortex) -> tuple[Assumed, dict[str, Any]]:
        assumed = await cortex.assumptions.of(whom)
        tools = tools_of(cortex, assume_configured=assume_configured)
        receipt = await tools.explain(
            assumed.user, assumed.role, message, mode=assumed.mode, recipe=recipe, entry=assumed.entry
        )
        return assumed, receipt

    return at_rest(asked)


def _print_json(value: Any) -> None:  # Any: whatever JSON can say
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
