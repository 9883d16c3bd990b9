"""What the Models page offers: the rows of `providers/servers.py` as `services/models/presets.py` has them."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from cortex.providers.server_row import ServerRow
from cortex.providers.servers import OTHER, SERVERS
from cortex.services.models.files import OWN_HOSTS, Kind
from cortex.services.models.presets import Preset


def presets() -> Sequence[Preset]:
    """A preset for each row, and one for any other server."""
    return tuple(_preset(row) for row in (*SERVERS, OTHER))


def _preset(row: ServerRow) -> Preset:
    kind: Kind = "anthropic" if row.protocols[0] == "messages" else "openai"
    is_makers = urlsplit(row.base_url).netloc == OWN_HOSTS[kind]
    return Preset(
        id=row.id,
        label=row.label,
        provider=kind,
        base_url="" if is_makers else row.base_url,
        example="" if row.base_url else row.example,
        keys_url=row.keys_url,
        is_local=row.is_local,
    )
