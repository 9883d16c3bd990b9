"""Home Assistant's card: the lights, heating and sensors of a home."""

from typing import Any

from cortex.base import scan
from cortex.integrations.cards import IntegrationHost
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.ports.home_assistant import HomeAssistant, HouseCommands, ServiceChecks
from cortex.ports.integrations import IntegrationKind


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="home_assistant",
        title="Home Assistant",
        about="Reads and controls your home: lights, heating, music, blinds, locks, sensors and their history.",
        order=10,
        opens=(HomeAssistant, ServiceChecks, HouseCommands),
        form=HomeAssistantForm,
        open=lambda form, _: scan.load("cortex.integrations.home_assistant.system").HomeAssistantSystem(form),
        by_person=_of_person,
        place=("address", "verify_certificate", "ca"),
        search=_homes_in_network,
        people=HomeAssistantForm.people,
    )


async def _of_person(system: Any, port: type[Any], person: str) -> Any:  # Any: the system, which is loaded late
    return await (system.commands(person) if port is HouseCommands else system.home(person))


async def _homes_in_network() -> str:
    return str(await scan.load("cortex.integrations.home_assistant.discovery").found_in_network())
