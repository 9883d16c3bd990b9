"""The card of a database that is read."""

from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.form import AetherDbForm
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="aether_db",
        title="Aether DB",
        about="Reads a MariaDB or MySQL database, and never changes it.",
        order=20,
        note="Needs an account with only SELECT and SHOW VIEW. docs/database.md shows how to create one.",
        ports=("AetherDatabase",),
        form=AetherDbForm,
        open=lambda form, _: ReadOnlyDatabase(form.access),
        place=("host", "port", "user", "tls", "ca"),
        has_many=True,
    )
