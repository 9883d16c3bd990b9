"""The providers and servers that the Models page offers: the rows of the table of servers, which compose hands in."""

from msgspec import Struct

from cortex.services.models.files import Kind, host_of

OTHER = "other"


class Preset(Struct, frozen=True, kw_only=True):
    """A provider as the form offers it. `base_url` "" = the maker's own, or none that is fixed: then `example` is set.

    `keys_url`: where a key is made, "" = none. `is_local`: a server that people run on their own machine, mostly
    without a key. `message_usd`: what a usual message costs, from most of its models to most of them; None: not known.
    """

    id: str
    label: str
    provider: Kind = "openai"
    base_url: str = ""
    example: str = ""
    keys_url: str = ""
    is_local: bool = False
    message_usd: tuple[float, float] | None = None

    @property
    def takes_address(self) -> bool:
        """Tell whether the person may say where it is; without a fixed place they have to."""
        return self.is_local or bool(self.example)

    @property
    def place(self) -> str:
        """The server as a person reads it."""
        if self.id == OTHER:
            return ""
        return host_of(self.provider, self.base_url or self.example)
