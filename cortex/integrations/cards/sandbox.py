"""The card of the sandbox, which works or does not."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="sandbox",
        title="Sandbox",
        about="Isolates what runs on this machine: shell commands and git.",
        order=90,
        ports=("Sandbox", "Git"),
        lacks=lambda: "" if host.is_boxed() else "No sandbox works here. Install bubblewrap and restart Cortex.",
    )
