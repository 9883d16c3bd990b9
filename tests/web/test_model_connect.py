"""Connecting a provider in the browser: a key, its own list, ticks; without script too; and what can go wrong."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.services.models.files import ServerAddress
from cortex.storage.secrets import SecretsRepository
from tests import model_lists
from tests.model_lists import LLAVA, QWEN, ModelLists, Page, openai_row, openrouter_row
from tests.scripted_server import ScriptedServer
from tests.web.conftest import Browser
from tests.web.marks import marks

KEY = "sk-or-the-whole-key-4711"
MANY: dict[str, Page] = {
    "GET /v1/models": (
        200,
        {
            "data": [
                *model_lists.OPENROUTER["data"],
                *(openrouter_row(f"maker/small-{at}", at + 1) for at in range(200)),
            ]
        },
    )
}
SONNET = "anthropic/claude-sonnet-4.5"


@pytest.fixture
def router(house: Cortex) -> Iterator[ModelLists]:
    """OpenRouter as the preset finds it."""
    with ModelLists(pages=MANY, key=KEY) as double:
        at(house, "openrouter", double)
        yield double


def at(house: Cortex, preset: str, double: ModelLists) -> None:
    """Have a preset lead to the double, and the local ones to nobody else."""
    nobody = "http://127.0.0.1:9/v1"
    house.models.presets = [
        replace(one, base_url=double.base_url if one.id == preset else nobody if one.is_local else one.base_url)
        for one in house.models.presets
    ]


async def connect(who: Browser, preset: str = "openrouter", key: str = KEY, **more: Any) -> httpx.Response:
    return await who.post("/models/connect", preset=preset, api_key=key, **more)


async def use(who: Browser, double: ModelLists, *picks: str) -> httpx.Response:
    sent = {"provider": "openai", "base_url": double.base_url, "pick": list(picks)}
    return await who.http.post("/models/connect/use", data=sent)


async def secrets(house: Cortex, who: Browser) -> list[str]:
    return list(await house.runtime.db.repository(SecretsRepository, who.user.id).names())


async def test_a_key_and_two_presses_bring_models_with_what_their_list_says(
    house: Cortex, ada: Browser, router: ModelLists, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    page = await connect(ada)
    assert page.status_code == 200
    shown = " ".join(page.text.split())
    assert f'name="pick" value="{SONNET}"' in shown
    assert "$3 / $15" in shown
    assert ("sees pictures" in shown, ", thinks" in shown) == (True, True)
    assert "free" in shown
    assert "Works: 203 models, uses tools, sees pictures" in shown
    assert "60 of 203 are shown" in shown
    answer = await use(ada, router, SONNET, "google/gemma-3n-e4b-it:free")
    assert (answer.status_code, answer.headers["location"]) == (303, "/models")
    registry = await house.models.registry(ada.user)
    first, second = registry.entries
    assert (first.name, first.model, first.base_url) == (SONNET, SONNET, router.base_url)
    assert (first.context_tokens, first.max_output_tokens, first.tools, first.sees) == (200_000, 16_000, True, True)
    assert (first.price.input_usd, first.price.cached_usd) == (3.0, 0.3)
    assert (second.context_tokens, second.max_output_tokens, second.tools, second.sees) == (8_192, 2_048, False, False)
    assert registry.default == (SONNET,)
    assert registry.with_key == {first.name, second.name}
    assert registry.waiting is None
    pages = [page, *[await ada.get(path) for path in ("/models", "/models/connect", f"/models/edit?name={SONNET}")]]
    assert all(KEY not in one.text for one in pages)
    assert KEY not in (house.settings.home / ada.user.id / "model_registry.json").read_text()
    assert KEY not in caplog.text
    assert len(await secrets(house, ada)) == 1


async def test_who_came_from_the_first_questions_goes_back_there_and_nowhere_else(
    ada: Browser, router: ModelLists
) -> None:
    for back, place in (("/start?open=model", "/start?open=model"), ("https://evil.example", "/models")):
        page = await connect(ada, back=back)
        kept = marks(page).values.get("back", "")
        sent = {"provider": "openai", "base_url": router.base_url, "back": kept, "anyway": "1"}
        pick = SONNET if place != "/models" else "google/gemma-3n-e4b-it:free"
        answer = await ada.http.post("/models/connect/use", data={**sent, "pick": [pick]})
        assert answer.headers["location"] == place


async def test_a_filter_keeps_what_is_ticked(ada: Browser, router: ModelLists) -> None:
    await connect(ada)
    sent = {"provider": "openai", "base_url": router.base_url, "pick": [SONNET], "q": "small 17"}
    part = await ada.http.post("/models/connect/list", data=sent, headers={"HX-Request": "true"})
    names = re.findall(r'name="pick" value="([^"]+)"( checked)?', part.text)
    assert names[0] == (SONNET, " checked")
    assert {name for name, _ in names[1:]} == {f"maker/small-{one}" for one in (17, 117, *range(170, 180))}
    assert "<h2" not in part.text
    whole = await ada.http.post("/models/connect/list", data={**sent, "q": "nothing like it", "pick": []})
    assert "No model matches." in whole.text
    assert router.asked.count("GET /v1/models") == 1, "the list is kept between the presses"


async def test_a_second_model_needs_no_second_key_and_the_key_goes_with_the_last(
    house: Cortex, ada: Browser, router: ModelLists
) -> None:
    await connect(ada)
    await use(ada, router, SONNET)
    page = await ada.post("/models/connect/more", provider="openai", base_url=router.base_url)
    assert f'value="{SONNET}" checked disabled' in page.text
    assert "More from" in (await ada.get("/models")).text
    await use(ada, router, SONNET, "maker/small-3")
    by_hand = {"name": "third", "provider": "openai", "model": "maker/small-4", "base_url": router.base_url}
    await ada.post("/models", **by_hand)
    registry = await house.models.registry(ada.user)
    assert registry.with_key == {SONNET, "maker/small-3", "third"}
    assert registry.key_mates("third") == (SONNET, "maker/small-3")
    assert len(await secrets(house, ada)) == 1
    await ada.post(f"/models/remove?name={SONNET}")
    assert len(await secrets(house, ada)) == 1
    await ada.post("/models", **by_hand, previous="third", api_key="sk-or-the-next-key-4712")
    (kept,) = await secrets(house, ada)
    assert {entry.secret for entry in (await house.models.registry(ada.user)).own} == {kept}
    for name in ("maker/small-3", "third"):
        await ada.post(f"/models/remove?name={name}")
    assert await secrets(house, ada) == []


async def test_a_refused_key_is_told_in_the_providers_words_and_kept_nowhere(
    house: Cortex, ada: Browser, router: ModelLists
) -> None:
    answer = await connect(ada, key="sk-or-wrong-key-000111")
    assert answer.status_code == 422
    assert "refused the key (401)" in answer.text
    assert "Incorrect API key" in answer.text
    assert "sk-or-wrong-key-000111" not in answer.text
    assert 'id="pv-openrouter" open>' in answer.text, "its card says so"
    assert await secrets(house, ada) == []
    assert "Choose a provider." in (await ada.post("/models/connect", preset="nobody")).text
    assert "Enter the address" in (await connect(ada, preset="other", key="")).text
    part = {"preset": "openrouter", "api_key": "sk-or-wrong-key-000111"}
    card = await ada.http.post("/models/connect", data=part, headers={"HX-Request": "true"})
    assert (card.status_code, "Incorrect API key" in card.text, card.text.count("<form")) == (422, True, 1)
    odd = await connect(ada, preset="other", key="", base_url="file:///etc/passwd")
    assert (odd.status_code, "an address like" in odd.text) == (422, True)
    unchosen = await connect_and_use(ada, router)
    assert (unchosen.status_code, "at least one" in unchosen.text) == (422, True)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("192.168.1.9:8080/v1", "http://192.168.1.9:8080/v1"),
        ("box.local:8080/v1", "http://box.local:8080/v1"),
        ("gpu:8000/v1", "http://gpu:8000/v1"),
        ("[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("models.example.org/v1", "https://models.example.org/v1"),
        ("http://models.example.org/v1", "http://models.example.org/v1"),
    ],
)
def test_a_scheme_is_added_where_an_address_lacks_it(typed: str, kept: str) -> None:
    assert ServerAddress(base_url=typed).base_url == kept


async def connect_and_use(who: Browser, double: ModelLists, *picks: str) -> httpx.Response:
    await connect(who)
    return await use(who, double, *picks)


async def test_a_key_without_a_chosen_model_is_shown_and_can_be_forgotten(
    house: Cortex, ada: Browser, router: ModelLists
) -> None:
    await connect(ada)
    await connect(ada)
    assert len(await secrets(house, ada)) == 1
    assert "/models/connect/forget" in marks(await ada.get("/models")).forms
    await ada.post("/models/connect/forget")
    assert await secrets(house, ada) == []
    assert "/models/connect/forget" not in marks(await ada.get("/models")).forms
    again = await use(ada, router, SONNET)
    assert (again.status_code, "wants a key" in again.text or "refused the key" in again.text) == (422, True)


async def test_a_key_that_only_the_list_takes_is_found_out_before_the_model_is_put_first(
    house: Cortex, ada: Browser, scripted: ScriptedServer
) -> None:
    sent = {"provider": "openai", "base_url": scripted.base_url, "pick": "scripted"}
    await connect(ada, preset="other", key="sk-wrong", base_url=scripted.base_url)
    refused = await ada.post("/models/connect/use", **sent)
    assert refused.status_code == 422
    for shown in ("Incorrect API key provided.", 'value="scripted" checked', "Save anyway", "Nothing was added."):
        assert shown in refused.text
    assert (await house.models.registry(ada.user)).entries == ()
    assert len(await secrets(house, ada)) == 1, "the key is kept for another try"
    added = await ada.post("/models/connect/use", **sent, api_key=scripted.api_key)
    assert added.headers["location"] == "/models"
    assert (await house.models.registry(ada.user)).default == ("scripted",)
    assert len(await secrets(house, ada)) == 1
    await ada.post("/models/remove?name=scripted")
    await connect(ada, preset="other", key="sk-wrong", base_url=scripted.base_url)
    asked = len(scripted.log)
    await ada.post("/models/connect/use", **sent, anyway="1")
    assert ((await house.models.registry(ada.user)).default, len(scripted.log)) == (("scripted",), asked)


async def test_a_choice_within_the_set_up_stays_there(house: Cortex, ada: Browser, scripted: ScriptedServer) -> None:
    back = "/start?open=model"
    listing = await connect(ada, preset="other", key=scripted.api_key, base_url=scripted.base_url, back=back)
    assert 'hx-post="/models/connect/use"' in listing.text
    part = {"HX-Request": "true", "HX-Request-Type": "partial"}
    sent = {"provider": "openai", "base_url": scripted.base_url, "back": back}
    nothing = await ada.http.post("/models/connect/use", data=sent, headers=part)
    assert (nothing.status_code, "Choose at least one" in nothing.text, "<html" in nothing.text) == (422, True, False)
    added = await ada.http.post("/models/connect/use", data={**sent, "pick": "scripted"}, headers=part)
    assert (added.status_code, added.headers["hx-redirect"]) == (204, back)
    tools = await ada.post("/models/send-tools", name="scripted", back=back)
    assert tools.headers["location"] == back


async def test_two_files_of_one_name_are_told_apart_by_their_paths(house: Cortex, ada: Browser) -> None:
    paths = ["/srv/models/gemma-3-4b.gguf", "/srv/more/gemma-3-4b.gguf"]
    listed: dict[str, Page] = {
        "GET /v1/models": (200, model_lists.whole(*(openai_row(path, owner="llamacpp") for path in paths)))
    }
    with ModelLists(pages=listed, key="") as double:
        at(house, "llamacpp", double)
        page = (await connect(ada, preset="llamacpp", key="")).text
        assert "<b>gemma-3-4b</b>" in page
        assert paths[0] in page
        await use(ada, double, *paths)
        assert {entry.name: entry.model for entry in (await house.models.registry(ada.user)).own} == {
            "gemma-3-4b": paths[0],
            "gemma-3-4b 2": paths[1],
        }


async def test_a_server_on_this_machine_is_offered_to_admins_alone(house: Cortex, ada: Browser, bob: Browser) -> None:
    with ModelLists(pages=model_lists.ollama(qwen3_8b=QWEN, llava_7b=LLAVA)) as double:
        at(house, "ollama", double)
        part = await ada.fragment("/models/connect/here")
        assert ("Found: 2 models" in part.text, "Not found" in part.text) == (True, True)
        assert "<h1" not in part.text
        assert "Found one" not in part.text
        asked_by_start = await ada.fragment("/models/connect/here?back=/start?open=model")
        assert ("Found one" in asked_by_start.text, "Ollama was found here" in asked_by_start.text) == (True, True)
        assert "Found: 2 models" in (await ada.get("/models/connect/here")).text, "without script too"
        asked = len(double.asked)
        assert "ound" not in (await bob.fragment("/models/connect/here")).text
        refused = await connect(bob, preset="ollama", key="")
        assert (refused.status_code, "Only an admin" in refused.text) == (422, True)
        assert len(double.asked) == asked
        page = await connect(ada, preset="ollama", key="")
        assert "OLLAMA_CONTEXT_LENGTH" in page.text
        await use(ada, double, "qwen3:8b")
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.name, entry.context_tokens, entry.sees, entry.secret) == ("qwen3:8b", 8_192, False, "")
        double.pages = model_lists.ollama({"qwen3:8b": 32_768}, qwen3_8b=QWEN, llava_7b=LLAVA)
        tested = (await ada.post("/models/test-saved", name="qwen3:8b")).text
        assert "32,768 tokens" in tested
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.context_tokens, "context_tokens" in entry.typed) == (32_768, False)
        assert 'placeholder="32,768"' in (await ada.get("/models/edit?name=qwen3:8b")).text
        part = await ada.fragment("/models/connect/here")
        assert ("Found: 2 models" in part.text, ">Connected<" in part.text) == (False, True)


async def test_a_model_that_is_a_file_is_called_by_its_name_and_asked_for_by_its_path(
    house: Cortex, ada: Browser
) -> None:
    with ModelLists(pages=model_lists.LLAMA_CPP_FILE) as double:
        at(house, "llamacpp", double)
        page = await connect(ada, preset="llamacpp", key="")
        assert "<b>SmolLM2-135M-Instruct.Q4_1</b>" in page.text
        await use(ada, double, model_lists.SMOL_FILE)
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.name, entry.model) == ("SmolLM2-135M-Instruct.Q4_1", model_lists.SMOL_FILE)
        assert (entry.engine, entry.context_tokens, entry.tools) == ("llamacpp", 8_192, True)
        more = await ada.post("/models/connect/more", provider="openai", base_url=double.base_url)
        assert f'value="{model_lists.SMOL_FILE}" checked disabled' in more.text


async def test_a_server_behind_a_gate_of_ones_own_is_what_its_card_says(house: Cortex, ada: Browser) -> None:
    with ModelLists(pages=model_lists.AZURE, key=KEY) as double:
        assert "NAME.openai.azure.com" in (await connect(ada, preset="azure")).text
        base = f"{double.origin}/openai/v1"
        page = await connect(ada, preset="azure", base_url=base)
        assert 'our-chat</b> <span class="sub">gpt-5-mini' in page.text
        sent = {"provider": "openai", "base_url": base, "pick": ["our-chat"]}
        double.pages = {**model_lists.AZURE, "POST /openai/v1/chat/completions our-chat": (200, model_lists.SPOKEN)}
        await ada.http.post("/models/connect/use", data={**sent, "anyway": "1"})
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.name, entry.base_url, entry.engine, entry.sees) == ("our-chat", base, "azure", True)
        assert (await ada.post("/models/connect/more", provider="openai", base_url=base)).status_code == 200
        assert set(double.headers) == {"api-key"}, "the key goes in its header whenever it is asked"


async def test_what_a_server_is_found_to_be_is_kept_with_models_that_were_added_before(
    house: Cortex, ada: Browser
) -> None:
    spoken: dict[str, Page] = {"POST /v1/chat/completions gemma-3-4b": (200, model_lists.SPOKEN)}
    with ModelLists(pages={**model_lists.LLAMA_CPP, **spoken}) as double:
        typed = {"name": "old", "provider": "openai", "model": "gemma-3-4b", "base_url": double.base_url}
        file = house.settings.home / ada.user.id / "model_registry.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"models": [typed]}))
        assert (await house.models.registry(ada.user)).own[0].engine == ""
        await ada.post("/models/test-saved", name="old")
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.engine, entry.context_tokens) == ("llamacpp", 8_192)
        await ada.post("/models", **typed, previous="old", max_rounds="3")
        (entry,) = (await house.models.registry(ada.user)).own
        assert (entry.engine, entry.max_rounds) == ("llamacpp", 3), "the form does not show it, and does not lose it"


async def test_a_card_says_what_a_message_costs_before_it_is_connected(house: Cortex, ada: Browser) -> None:
    page = (await ada.get("/models/connect")).text
    cards = dict(re.findall(r'id="pv-(\w+)">(.*?)</details>\s*(?=<details class="pv"|</div>)', page, re.DOTALL))
    assert set(cards) == {one.id for one in house.models.presets}
    for preset in house.models.presets:
        says = {
            "free": "Free: it runs here." in cards[preset.id],
            "priced": bool(re.search(r"about \$0\.\d+ to \$\d\.\d+ for a message", cards[preset.id])),
            "unknown": "Price unknown" in cards[preset.id],
        }
        right = (
            "free" if preset.is_local and preset.id != "litellm" else "unknown" if preset.takes_address else "priced"
        )
        assert [name for name, is_said in says.items() if is_said] == [right], preset.id
