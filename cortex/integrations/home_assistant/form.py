"""What the card of Home Assistant asks, and its test: connect, log in, count, and say what is there.

Used by the integrations page; the values are kept sealed by `services/integrations`.
"""

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from cortex.base.errors import UserError
from cortex.integrations.home_assistant.allowed import AllowList, allow_list
from cortex.integrations.home_assistant.index import HouseIndex
from cortex.integrations.home_assistant.server import HomeServer, HomeTrouble, server_at

FIELD_OF = {"refused": "token", "certificate": "verify_certificate"}


class HomeAssistantForm(BaseModel):
    """The fields of the card, in their order."""

    model_config = ConfigDict(extra="forbid")

    address: str = Field(
        title="Address",
        description="As in a browser, such as http://homeassistant.local:8123. A search of the network can find it.",
        max_length=300,
    )
    token: SecretStr = Field(
        title="Long-lived access token",
        description="In Home Assistant: your profile, Security, Long-lived access tokens. It is kept sealed.",
        max_length=2_000,
    )
    verify_certificate: bool = Field(
        default=True,
        title="Check the certificate",
        description="Switch it off only for a Home Assistant in your own network with a certificate of its own making.",
    )
    allowed: str = Field(
        default="",
        title="What may be seen and moved",
        description="Empty: everything. Else domains, entity ids, area:Kitchen, floor:Upstairs or label:Guests, with"
        " commas between; -lock takes locks away.",
        max_length=4_000,
    )
    plain_commands: bool = Field(
        default=True,
        title="Plain commands without a model",
        description='"Turn off the kitchen lights" is done at once, without a model, where its meaning is certain.',
    )

    def server(self) -> HomeServer:
        """Where to connect; UserError for an address or token that is none."""
        return server_at(self.address, self.token.get_secret_value(), is_checked=self.verify_certificate)

    def allow_list(self) -> AllowList:
        """What may be seen and moved; UserError for an entry that is none."""
        return allow_list(self.allowed)


async def try_out(form: HomeAssistantForm) -> str:
    """What is there, in a sentence; UserError says what is wrong and which field mends it. Within 30 seconds."""
    form.allow_list()
    index = HouseIndex(form.server())
    try:
        async with index.client.running() as client:
            house = await index.house()
            version = (await client.socket()).version
    except HomeTrouble as trouble:
        raise UserError(trouble.message, field=FIELD_OF.get(trouble.kind, "address")) from trouble
    may = form.allow_list().in_house(house)
    open_to = sum(may(one) for one in house.entities.values())
    count = f"{open_to} of {len(house.entities)}" if open_to < len(house.entities) else str(open_to)
    return f"Home Assistant {version} answers: {count} entities in {len(house.areas)} areas."
