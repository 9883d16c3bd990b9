"""The models page: a key goes in and never comes out, a test says what is wrong, chains keep their order."""

import re

from cortex.app import Cortex
from cortex.providers.servers import OTHER, SERVERS
from cortex.services.models.learned import ModelFact
from tests.patience import PATIENCE_S
from tests.web.conftest import Browser
from tests.web.marks import marks

LOCAL = {
    "name": "local",
    "provider": "openai",
    "model": "some-model",
    "base_url": "http://127.0.0.1:9/v1",
    "streams": "1",
    "tools": "1",
}


async def test_the_empty_page_says_what_to_do_and_offers_every_provider(house: Cortex, ada: Browser) -> None:
    page = await ada.get("/models")
    assert "offline demo model answers" in page.text
    assert [preset.id for preset in house.models.presets] == [row.id for row in (*SERVERS, OTHER)]
    for preset in house.models.presets:
        assert f'value="{preset.id}"' in page.text
        assert f"<b>{preset.label}</b>" in page.text
        assert not preset.keys_url or preset.keys_url in page.text
        assert preset.base_url in (await ada.get(f"/models/new?preset={preset.id}")).text
    assert (await ada.get("/models/new?preset=nobody")).status_code == 404


async def test_a_saved_model_is_in_the_registry_and_its_key_on_no_page(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/models", **LOCAL, api_key="sk-very-secret", input_usd="0.5", max_rounds="3", sees="yes")
    assert answer.headers["location"] == "/models"
    registry = await house.models.registry(ada.user)
    (entry,) = registry.entries
    assert (entry.name, entry.tools, entry.parallel_calls, entry.sees) == ("local", True, False, True)
    assert (entry.price.input_usd, entry.max_rounds) == (0.5, 3)
    assert registry.with_key == {"local"}
    pages = [await ada.get(path) for path in ("/models", "/models/edit?name=local")]
    assert all("sk-very-secret" not in page.text for page in pages)
    assert "sk-very-secret" not in (house.settings.home / ada.user.id / "model_registry.json").read_text()


async def test_a_slip_is_named_and_the_rest_is_kept_but_the_key(ada: Browser) -> None:
    answer = await ada.post("/models", **{**LOCAL, "name": "", "api_key": "sk-very-secret"})
    assert answer.status_code == 422
    assert "f-name-e f-name-h" in answer.text
    assert "It is needed." in answer.text
    assert 'value="some-model"' in answer.text
    assert "sk-very-secret" not in answer.text


async def test_the_connection_test_says_what_is_wrong_in_a_fragment(ada: Browser) -> None:
    answer = await ada.http.post("/models/test", data=LOCAL, headers={"HX-Request": "true"}, timeout=PATIENCE_S)
    assert answer.status_code == 200
    assert "not be reached" in marks(answer).said["bad"]
    assert "<form" not in answer.text
    await ada.post("/models", **LOCAL)
    saved = await ada.http.post("/models/test-saved", data={"name": "local"}, timeout=PATIENCE_S)
    assert "not be reached" in marks(saved).said["bad"]
    assert (await ada.post("/models/test-saved", name="nobody")).status_code == 404
    page = (await ada.get("/models/edit?name=local")).text
    assert "Last test" in page
    assert "not be reached" in page


async def test_chains_keep_their_order(house: Cortex, ada: Browser) -> None:
    await ada.post("/models", **LOCAL)
    await ada.http.post("/models/chain", data={"names": ["offline", "local", ""]})
    assert (await house.models.registry(ada.user)).default == ("offline", "local")
    assert (await ada.post("/models/chain", names="gone")).status_code == 422


async def test_removing_asks_first(house: Cortex, ada: Browser) -> None:
    await ada.post("/models", **LOCAL)
    assert "/models/remove?name=local" in marks(await ada.get("/models/remove?name=local")).forms
    await ada.post("/models/remove?name=local")
    assert (await house.models.registry(ada.user)).entries == ()
    assert (await ada.get("/models/edit?name=local")).status_code == 404


async def test_what_a_model_caches_is_said_and_can_be_changed(house: Cortex, ada: Browser) -> None:
    await ada.post("/models", **LOCAL)
    page = (await ada.get("/models/edit?name=local")).text
    assert re.search(r"In force:[^.;]*10 minutes; [^.]*is free", page)
    assert 'placeholder="8,192"' in page
    assert "found" in marks(page).chosen
    await ada.post("/models", **LOCAL, previous="local", profile="none")
    page = (await ada.get("/models/edit?name=local")).text
    assert re.search(r"In force:[^.]*nothing", page)
    assert 'placeholder="8,192"' in page  # the server is no larger for it
    assert "none" in marks(page).chosen
    (entry,) = (await house.models.registry(ada.user)).own
    assert not (await house.profiles.profile_of(ada.user, entry)).profile.caches
    refused = await ada.post("/models", **LOCAL, previous="local", profile="gemini")
    assert (refused.status_code, 'id="f-profile-e"' in refused.text) == (422, True)
    assert "In force: " in (await ada.get("/models/new?preset=ollama")).text


async def test_what_a_server_refused_stands_on_the_card_until_it_is_forgotten_or_set_anew(
    house: Cortex, ada: Browser
) -> None:
    await ada.post("/models", **LOCAL, context_tokens="50000")
    facts = [
        ModelFact(what="context_tokens", value="8192"),
        ModelFact(what="tools"),
        ModelFact(what="tool", value="task_create"),
    ]
    await house.models.learned.learn(ada.user.id, "local", [*facts, ModelFact(what="parameter", value="temperature")])
    assert "Learned from its" in (await ada.get("/models")).text
    page = (await ada.get("/models/edit?name=local")).text
    for line in ("at most 8,192 tokens of context", "Takes no tools.", "the tool task_create", "parameter temperature"):
        assert line in page
    assert 'value="50000"' in page, "the form shows what was set"
    entry = await house.models.entry(ada.user, "local")
    assert (entry.context_tokens, entry.tools, entry.refused) == (8_192, False, ("temperature",))

    away = await ada.post("/models/forget", name="local", what="tools", value="")
    assert away.headers["location"] == "/models/edit?name=local"
    assert (await house.models.entry(ada.user, "local")).tools
    assert "no tools." not in (await ada.get("/models/edit?name=local")).text

    await ada.post("/models", **LOCAL, previous="local", context_tokens="60000")
    entry = await house.models.entry(ada.user, "local")
    assert (entry.context_tokens, entry.refused) == (60_000, ("temperature",)), (
        "what was set anew counts, the rest stays"
    )
    await ada.post("/models", **{**LOCAL, "name": "renamed"}, previous="local", context_tokens="60000")
    assert (await house.models.entry(ada.user, "renamed")).refused == ("temperature",)
    moved = {**LOCAL, "name": "renamed", "base_url": "http://127.0.0.1:8/v1"}
    await ada.post("/models", **moved, previous="renamed", context_tokens="60000")
    assert (await house.models.entry(ada.user, "renamed")).refused == (), "another server is another matter"
    assert (await ada.post("/models/forget", name="nobody")).status_code == 404


async def test_who_borrows_a_model_sees_and_forgets_what_it_showed_them(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await ada.post("/models", **LOCAL, share="everybody")
    given = "local (from Ada)"
    await house.models.learned.learn(bob.user.id, given, [ModelFact(what="tools")])
    assert "Takes no tools." in (await bob.get("/models")).text
    assert "no tools." not in (await ada.get("/models/edit?name=local")).text
    assert not (await house.models.entry(bob.user, given)).tools
    assert (await house.models.entry(ada.user, "local")).tools
    assert (await bob.post("/models/forget", name=given, what="tools")).headers["location"] == "/models#shared"
    assert (await house.models.entry(bob.user, given)).tools
    assert (await ada.post("/models/forget", name=given)).status_code == 404
