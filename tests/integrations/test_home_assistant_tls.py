"""Home Assistant over https with a certificate of one's own: the authority on its card, and what is not trusted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.home_assistant.system import HomeAssistantSystem
from tests.authority import Authority
from tests.home_assistant_double import TOKEN, HomeDouble, home_double

OURS, ANOTHERS = Authority(), Authority()


@pytest.fixture
async def double(tmp_path: Path) -> AsyncIterator[HomeDouble]:
    async with home_double(OURS.server(tmp_path)) as home:
        yield home


@pytest.fixture
async def systems() -> AsyncIterator[list[HomeAssistantSystem]]:
    made: list[HomeAssistantSystem] = []
    yield made
    for system in made:
        await system.close()


def opened(systems: list[HomeAssistantSystem], double: HomeDouble, **given: object) -> HomeAssistantSystem:
    form = HomeAssistantForm.model_validate({"address": double.url, "token": TOKEN, **given})
    systems.append(HomeAssistantSystem(form))
    return systems[-1]


@pytest.mark.parametrize("pasted", [OURS.pem, OURS.pem.replace("\n", " ")], ids=["lines", "one line"])
async def test_its_own_authority_is_trusted_for_states_and_for_history(
    double: HomeDouble, systems: list[HomeAssistantSystem], pasted: str
) -> None:
    system = opened(systems, double, ca=pasted)
    assert "10 entities in 4 areas" in await system.test()
    double.past = [[{"state": "4.5", "last_changed": "2026-11-20T18:00:00+00:00"}]]
    (change,) = await (await system.home("ada")).history("sensor.outside", 24)
    assert change.state == "4.5"


@pytest.mark.parametrize("ca", ["", ANOTHERS.pem], ids=["none", "another's"])
async def test_a_certificate_that_is_not_trusted_is_said_at_the_field(
    double: HomeDouble, systems: list[HomeAssistantSystem], ca: str
) -> None:
    with pytest.raises(UserError) as caught:
        await opened(systems, double, ca=ca).test()
    assert caught.value.field == "ca"
    assert caught.value.message.startswith(f"The certificate of 127.0.0.1:{double.port} is not trusted (")
    assert "its authority" in caught.value.message
    assert double.logins == 0  # the token was sent to nobody


def test_an_authority_that_nothing_would_ask_is_refused() -> None:
    typed = {"address": "https://ha", "token": TOKEN, "ca": OURS.pem, "verify_certificate": False}
    with pytest.raises(ValueError, match="switch “Check the certificate” on"):
        HomeAssistantForm.model_validate(typed)


async def test_without_the_check_any_certificate_does(double: HomeDouble, systems: list[HomeAssistantSystem]) -> None:
    assert "answers" in await opened(systems, double, verify_certificate=False).test()


@pytest.mark.parametrize(
    "ca", ["a file", "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----"], ids=["text", "no certificate"]
)
def test_what_is_no_certificate_is_refused_on_the_card(ca: str) -> None:
    with pytest.raises(ValueError, match="certificate"):
        HomeAssistantForm.model_validate({"address": "https://ha", "token": TOKEN, "ca": ca})
