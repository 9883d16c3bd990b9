"""The card of updates, which work or do not."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="upkeep",
        title="Update",
        about="Updates Cortex when an admin asks for it in a chat or runs the command “cortex update”.",
        order=110,
        ports=("Upkeep",),
        lacks=host.no_updates,
    )
