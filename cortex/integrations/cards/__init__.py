"""The outside systems that this version can be set up with: a file each, which says all of itself.

A file has `integration(host)`, which gives its `IntegrationKind`; the folder is the register. None imports another.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from cortex.base import scan
from cortex.base.settings import Settings
from cortex.integrations.aider.system import AiderHost
from cortex.integrations.mcp.system import McpHost
from cortex.ports.integrations import IntegrationKind, LoginStore


class IntegrationHost(Struct, frozen=True, kw_only=True):
    """The parts of this server that integrations get.

    lacks_channel: what a notification channel lacks, by its name. is_boxed: whether the sandbox works on this machine.
    no_updates: why there are none. logins: where the login of a kind's client is kept. mcp, aider: what the machine
    gives to those.
    """

    settings: Settings
    lacks_channel: Callable[[str], str]
    is_boxed: Callable[[], bool]
    no_updates: Callable[[], str]
    logins: Callable[[str], LoginStore]
    mcp: McpHost
    aider: AiderHost


def kinds(host: IntegrationHost) -> Sequence[IntegrationKind]:
    """Every kind, in the order of the page."""
    files = [scan.load(f"{__name__}.{name}") for name in scan.modules(__name__)]
    found: list[IntegrationKind] = [file.integration(host) for file in files]
    return sorted(found, key=lambda kind: (kind.order, kind.name))
