"""A model server whose certificate an authority of one's own signed: connected, tested and asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.base.errors import ProviderError, UserError
from tests.authority import Authority
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Say, ScriptedServer, rule

OURS, ANOTHERS = Authority(), Authority()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(rule("", Say("Good morning.")), tls=OURS.server(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("pasted", [OURS.pem, OURS.pem.replace("\n", " ")], ids=["lines", "one line"])
async def test_a_server_is_connected_and_answers_by_the_authority_that_was_pasted(
    house: LivingHouse, server: ScriptedServer, pasted: str
) -> None:
    connecting = house.cortex.model_connecting
    await connecting.connect(house.admin, "other", server.base_url, server.api_key, pasted)
    (entry,) = await connecting.use(house.admin, "openai", server.base_url, ["scripted"])
    await house.say(chat := await house.conversation(), "good morning")
    answers = [event.payload["text"] for event in await house.events(chat, "part.end")]
    assert answers == ["Good morning."]
    again = await connecting.more(house.admin, "openai", server.base_url)
    assert [model.id for model in again.models] == ["scripted"]
    report = await house.cortex.models.test_saved(house.admin, entry.name)
    assert report.is_ok, report.message


@pytest.mark.parametrize("pasted", ["", ANOTHERS.pem], ids=["none", "another's"])
async def test_a_certificate_that_is_not_trusted_is_said_with_what_to_do(
    tmp_path: Path, server: ScriptedServer, pasted: str
) -> None:
    async with living_house(tmp_path / "home") as house:
        with pytest.raises(ProviderError, match=r"not trusted \(.*Certificate authority"):
            await house.cortex.model_connecting.connect(house.admin, "other", server.base_url, server.api_key, pasted)
        form = {"name": "own", "provider": "openai", "model": "scripted", "base_url": server.base_url, "ca": pasted}
        report = await house.cortex.models.test(house.admin, {**form, "api_key": server.api_key})
        assert (report.is_ok, "Certificate authority" in report.message) == (False, True)
    assert server.log == []  # the key was sent to nobody


@pytest.mark.parametrize("pasted", ["my certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"])
async def test_what_is_no_certificate_is_refused_at_its_field(house: LivingHouse, pasted: str) -> None:
    form = {"name": "own", "provider": "openai", "model": "m", "base_url": "https://127.0.0.1:1/v1", "ca": pasted}
    with pytest.raises(UserError) as caught:
        await house.cortex.models.save(house.admin, form)
    assert list(getattr(caught.value, "fields", {})) == ["ca"]
