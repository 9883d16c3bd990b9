"""The card of the mail server, which the server's settings set up."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="email",
        title="E-mail",
        about="Sends e-mails: notifications, and what people ask Cortex to send.",
        order=70,
        ports=("Mail",),
        settings="mail",
        lacks=lambda: host.lacks_channel("email"),
    )
