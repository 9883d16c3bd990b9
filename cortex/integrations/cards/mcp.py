"""The card of an MCP server: tools from other makers."""

from cortex.integrations.cards import IntegrationHost
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.mcp.system import McpSystem
from cortex.ports.integrations import IntegrationKind
from cortex.ports.mcp import FAMILY, LOGIN, PAGE, port_of


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name=FAMILY,
        title="MCP server",
        about="Adds tools from other makers (Model Context Protocol): a program on this machine, or an address.",
        order=50,
        note="Each of its tools is off until you allow it on its tools page, and off again when the server "
        "changes its description. Programs run in the sandbox without network access unless you allow "
        "it.",
        form=McpForm,
        open=lambda form, name: McpSystem(form, name, host.mcp),
        place=("address", "command", "has_network"),
        has_many=True,
        port_of=port_of,
        more=PAGE,
        more_label="Tools",
        more_of_all="All servers, and adding by pasting",
        beside=(LOGIN,),
    )
