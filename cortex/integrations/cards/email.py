"""The card of the mail server, which the server's settings set up."""

from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind

LINES = (
    "CORTEX_SMTP_HOST=mail.example.org",
    "CORTEX_SMTP_FROM=cortex@example.org",
    "# where the mail server asks for a login",
    "CORTEX_SMTP_USER=cortex@example.org",
    "CORTEX_SMTP_PASSWORD=your-password",
)


def integration(host: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="email",
        title="E-mail",
        about="Sends e-mails: notifications, and what people ask Cortex to send.",
        order=70,
        ports=("Mail",),
        variables=("CORTEX_SMTP_HOST", "CORTEX_SMTP_FROM", "CORTEX_SMTP_USER", "CORTEX_SMTP_PASSWORD"),
        lacks=lambda: host.lacks_channel("email"),
        lines=LINES,
    )
