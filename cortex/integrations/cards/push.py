"""The card of Web push, which the server's settings set up."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="push",
        title="Web push",
        about="Notifies browsers and phones that people add under Devices.",
        order=80,
        ports=("Push",),
        variables=("CORTEX_PUSH_SUBJECT", "CORTEX_PUBLIC_URL"),
        lacks=lambda: host.lacks_channel("web_push"),
        lines=("CORTEX_PUSH_SUBJECT=mailto:you@example.org",),
    )
