"""Names for models on the page of tokens: set, refused with what was typed kept, removed, a person's own."""

from tests.web.conftest import Browser

HERE = "/account/tokens"
MODEL = {"name": "local", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


async def test_a_name_is_set_and_removed_on_the_page(ada: Browser, bob: Browser) -> None:
    await ada.post("/models", **MODEL)
    assert "gpt-4o" in (await ada.get(HERE)).text, "an example"
    await ada.post(f"{HERE}/names", name="gpt-5", model="local", embeds="")
    await ada.post(f"{HERE}/names", name="embed-small", model="local", embeds="bge-m3")
    await ada.post(f"{HERE}/names", name="*", model="cortex", embeds="")
    shown = (await ada.get(HERE)).text
    assert "embeddings by bge-m3" in shown
    assert "every unknown name" in shown
    assert "gpt-5" not in (await bob.get(HERE)).text
    await ada.post(f"{HERE}/names/remove", name="gpt-5")
    assert 'value="gpt-5"' not in (await ada.get(HERE)).text
    assert (await ada.post(f"{HERE}/names/remove", name="gpt-5")).status_code == 404


async def test_what_cannot_be_is_said_beside_its_field_and_kept(ada: Browser) -> None:
    await ada.post("/models", **MODEL)
    taken = await ada.post(f"{HERE}/names", name="local", model="cortex", embeds="")
    assert (taken.status_code, "a model already" in taken.text) == (422, True)
    odd = await ada.post(f"{HERE}/names", name="<b>", model="cortex", embeds="")
    assert (odd.status_code, "&lt;b&gt;" in odd.text) == (422, True)
    none = await ada.post(f"{HERE}/names", name="x", model="gone", embeds="")
    assert (none.status_code, "There is no" in none.text) == (422, True)
    whose = await ada.post(f"{HERE}/names", name="embed", model="cortex", embeds="bge-m3")
    assert (whose.status_code, "bge-m3" in whose.text) == (422, True)
