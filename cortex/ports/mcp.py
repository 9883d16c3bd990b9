"""The socket for tools of MCP servers."""

from typing import Any, Protocol

FAMILY = "mcp"
PAGE = "/admin/mcp"
LOGIN = "login"  # what is sealed beside a server's form: how to log in there
LEFT_OUT = "cortex_left_out"  # a mark that no server can set: why a tool that it lists cannot be used


def category_name(server: str) -> str:
    """Return what the category of a server's tools is called; roles name it, or all of them as `mcp`."""
    return f"{FAMILY}_{server}"


def port_of(server: str) -> str:
    """The port that a server's tools wait for, so that its card says who may use them."""
    return f"{FAMILY}:{server}"


class McpServers(Protocol):
    """The MCP servers that an admin set up, as one user may use them."""

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        """Call the server's tool and give its result as text, files and images kept beside.

        server, tool: as the admin named the one and the server the other. ToolFailed says in a sentence what went
        wrong: what the tool itself said of its failure, a server that is down or does not answer, a tool that changed
        since it was allowed.
        """
        ...
