"""`cortex explain` and `cortex prompt-size`: what a message would be given and would weigh. No model is asked."""

import json
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from cortex.app import Cortex
from cortex.base.model import ProfileName
from cortex.base.role import ToolMode
from cortex.base.user import Rank
from cortex.commands.at_rest import at_rest
from cortex.selection.index.sentence_models import LABEL as SENTENCE_MODEL
from cortex.services.models.profiles import in_words
from cortex.services.tools.tools import ToolsService, request_tokens
from cortex.services.workshop.assumptions import Assumed, Whom

Receipt = dict[str, Any]  # as `tools.explain` writes it: Any for whatever JSON can say
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


def _command(
    name: str, words: str, value: Callable[[Receipt], Receipt], lines: Callable[[Receipt], Iterator[str]]
) -> Callable[..., None]:
    """Make a command of a message: it prints `value` as JSON, or `lines` and what was assumed."""

    def command(
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
        whom = Whom(user=user, rank=rank, role=role, mode=mode, model=model, profile=profile or "")
        assumed, receipt = _explained(message, whom, recipe, assume_configured)
        if as_json:
            typer.echo(json.dumps({**value(receipt), **assumed.facts}, ensure_ascii=False, indent=2))
            return
        for line in lines(receipt):
            typer.echo(line)
        typer.echo(f"{assumed.sentence} {in_words(assumed.entry.profile)}")

    command.__name__, command.__doc__ = name, words
    return command


def _reasons(receipt: Receipt) -> Iterator[str]:
    yield (
        f"{len(receipt['sent'])} of {receipt['permitted']} tools, {receipt['tokens']:,} tokens a round, "
        f"{receipt['saved']:,} saved"
    )
    for one in receipt["sent"]:
        yield f"  {one['name']:<24} {one['form']:<6} {one['tokens']:>5}  {one['reason']}"
    for one in receipt["decisions"]:
        if not one["is_in"]:
            yield f"  {one['name']:<24} out          {one['reason']}"
    if SENTENCE_MODEL in receipt["labels"]:
        yield f"{SENTENCE_MODEL} {receipt['labels'][SENTENCE_MODEL]}"


def _sizes(receipt: Receipt) -> Iterator[str]:
    return (f"{name:<12} {count:>6,}" for name, count in request_tokens(receipt).items())


explain = _command(
    "explain", "Show which tools this message would be given, and why. No model is asked.", dict, _reasons
)
prompt_size = _command(
    "prompt-size", "Count the tokens of the exact first request that this message makes.", request_tokens, _sizes
)


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


def _explained(message: str, whom: Whom, recipe: str, assume_configured: bool) -> tuple[Assumed, Receipt]:
    """Return what was assumed, and the receipt of the message as the first of a new conversation."""

    async def asked(cortex: Cortex) -> tuple[Assumed, Receipt]:
        assumed = await cortex.assumptions.of(whom)
        tools = tools_of(cortex, assume_configured=assume_configured)
        receipt = await tools.explain(
            assumed.user, assumed.role, message, mode=assumed.mode, recipe=recipe, entry=assumed.entry
        )
        return assumed, receipt

    return at_rest(asked)
