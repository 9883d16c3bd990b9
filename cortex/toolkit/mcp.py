"""Tools of MCP servers as tools of the registry: named after their server, checked by their schema, never trusted.

What a server says of its tool is data: its description is cut and shows what hides in it, its risk is medium at the
least, its results are from outside. What the admin wrote in its place is trusted as what ships.
The source of the fields: https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

import logging
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from msgspec import Struct
from pydantic import BaseModel, RootModel, model_validator

from cortex.base.messages import ToolSchema
from cortex.ports.mcp import McpServers, category_name, port_of
from cortex.toolkit.context import Ctx
from cortex.toolkit.json_schema import harmless, one_line, without_words
from cortex.toolkit.schema import bare, canonical
from cortex.toolkit.spec import Category, Output, Tool
from cortex.toolkit.wire_schema import WireSchema, wire_schema
from cortex.toolkit.words import Words, listed

NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 1_024  # of a tool, all of it: OpenAI refuses the whole request for one more
FAULTS_MOST = 3
UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_ODD = re.compile(r"[^A-Za-z0-9_-]+")

log = logging.getLogger(__name__)


class McpServer(Struct, frozen=True, kw_only=True):
    """A server as an admin set it up. `place`: the host it sends what it gets to, "" where nothing leaves this machine.

    about: what it is good for, in the admin's words. is_private: what it reads is private data.
    """

    name: str
    about: str = ""
    place: str = ""
    is_private: bool = False


class McpTool(Struct, frozen=True, kw_only=True):
    """A tool as its server lists it. `words`: the admin's own in place of the server's, "" = the server's."""

    name: str
    title: str = ""
    description: str = ""
    schema: Mapping[str, Any]
    is_read_only: bool = False
    is_open_world: bool = True
    is_idempotent: bool = False
    words: str = ""

    @classmethod
    def of(cls, listed: Mapping[str, Any], words: str = "") -> "McpTool":
        """From its JSON as it came over the wire; what is of a wrong type counts as not said."""
        hints = listed.get("annotations")
        hints = hints if isinstance(hints, dict) else {}
        title = listed.get("title") or hints.get("title")
        description, schema = listed.get("description"), listed.get("inputSchema")
        return cls(
            name=str(listed.get("name", "")),
            title=title if isinstance(title, str) else "",
            description=description if isinstance(description, str) else "",
            schema=schema if isinstance(schema, dict) else {},
            is_read_only=hints.get("readOnlyHint") is True,
            is_open_world=hints.get("openWorldHint") is not False,
            is_idempotent=hints.get("idempotentHint") is True,
            words=words,
        )


def tool_name(server: str, tool: str) -> str:
    """The name by which models call it: letters, digits, _ and -, at most 64, as every provider takes them.

    A longer one ends with a digest of the whole, so that two long ones stay two.
    """
    made = f"{_ODD.sub('_', server)}_{_ODD.sub('_', tool).strip('_') or 'tool'}"
    made = made if made[0].isalpha() or made[0] == "_" else f"_{made}"
    return made if len(made) <= NAME_CHARACTERS else _with_digest(made, made)


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """The name of each tool; of two that would be called the same, the one that is written so, else the first, is."""
    plain = {tool: tool_name(server, tool) for tool in tools}
    made: dict[str, str] = {}
    taken: set[str] = set()
    for tool in sorted(plain, key=lambda one: (plain[one] != f"{server}_{one}", one)):
        name = plain[tool] if plain[tool] not in taken else _with_digest(plain[tool], f"{server} {tool}")
        made[tool] = name
        taken.add(name)
    return made


def _with_digest(name: str, whole: str) -> str:
    return f"{name[: NAME_CHARACTERS - 9]}_{sha256(whole.encode()).hexdigest()[:8]}"


def mcp_category(server: McpServer, tools: Iterable[McpTool], names: Iterable[str] = ()) -> Category:
    """The server's tools as a category. `names`: of all that it lists, so that one is called the same without another.

    One that cannot be made into a tool is left out, and logged.
    """
    given = {one.name: one for one in tools}
    called = tool_names(server.name, {*given, *names})
    made: list[Tool] = []
    for name, one in given.items():
        try:
            made.append(mcp_tool(server, one, called[name]))
        except UNUSABLE:
            log.exception("the tool %r of the MCP server %s cannot be used", name, server.name)
    about = one_line(server.about, 60) or f"tools of the MCP server {server.name}"
    return Category(name=category_name(server.name), summary=about, tools=tuple(made))


def mcp_tool(server: McpServer, given: McpTool, called: str = "") -> Tool:
    """The tool as the registry has it, under this name. A schema that says nothing lets every object by."""
    name = called or tool_name(server.name, given.name)
    checked = harmless(given.schema)
    wire = wire_schema(without_words(checked) if given.words else checked)
    parameters = wire.parameters
    summary = f"{_ODD.sub(' ', given.name).replace('_', ' ').strip()} ({server.name})"[:69]
    said = given.words or one_line(given.description or given.title, DESCRIPTION_CHARACTERS)
    description = f"{summary}\n{said}"[:DESCRIPTION_CHARACTERS] if said else summary
    is_read = given.is_read_only
    place = server.place
    return Tool(
        name=name,
        category=category_name(server.name),
        summary=summary,
        function=_calling(server.name, given.name, wire),
        arguments=_arguments(name, checked, wire),
        full=ToolSchema(name=name, description=description, parameters=parameters),
        stub=ToolSchema(name=name, description=summary, parameters=bare(without_words(parameters))),
        line=f"{name}: {summary}",
        hash=sha256(canonical([name, description, parameters]).encode()).hexdigest()[:16],
        risk="medium" if is_read and not given.is_open_world else "high",
        effect="read" if is_read else "write",
        confirm=not is_read or given.is_open_world,
        idempotent=is_read or given.is_idempotent,
        needs=(McpServers.__name__, port_of(server.name)),
        reads_untrusted=True,
        reads_private=server.is_private,
        sends_out=bool(place),
        sends_to=(lambda _: place) if place else None,
        words=_words(server.name, given),
        has_foreign_words=bool(said) and not given.words,
    )


def _words(server: str, given: McpTool) -> Words:
    """Say whose tool it is first, as the rest is the server's own."""
    what = one_line(("" if given.words else given.title) or given.name.replace("_", " "), 60)

    def words(values: Mapping[str, Any]) -> str:
        return f"{server}: {what}{f' ({listed(values)})' if values else ''}"

    return words


def _calling(server: str, tool: str, wire: WireSchema) -> Any:  # Any: a tool's function
    async def call(ctx: Ctx, root: dict[str, Any]) -> Output:
        text = await ctx.use(McpServers).call(server, tool, wire.own(root))
        return Output(text=text, is_tainted=True)

    return call


def _arguments(name: str, checked: dict[str, Any], wire: WireSchema) -> type[BaseModel]:
    """The model that checks a call: a plain object, held against the schema. Its field is called `root`."""
    validator = Draft202012Validator(checked)

    class Arguments(RootModel[dict[str, Any]]):
        @model_validator(mode="after")
        def _fits(self) -> "Arguments":
            faults = [
                f"{'.'.join(map(str, fault.absolute_path)) or 'arguments'}: {one_line(fault.message, 200)}"
                for fault in islice(validator.iter_errors(wire.own(self.root)), FAULTS_MOST)
            ]
            if faults:
                raise ValueError("; ".join(faults))
            return self

    Arguments.__name__ = Arguments.__qualname__ = f"{name}_arguments"
    return Arguments
