"""The card of Web push, which is there by itself; a setting says whom push services may write to."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="push",
        title="Web push",
        about="Notifies browsers and phones that people add under Devices.",
        order=80,
        ports=("Push",),
        settings="notifications",
    )
