"""Servers' own lists of models, each in its documented form, and everything else that may come in their place."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.address import PUBLIC, named
from cortex.base.errors import ProviderError
from cortex.base.model import Price
from cortex.ports.model_lists import ListedModel, ModelList, ModelServer
from cortex.providers import list_models
from cortex.providers.list_formats import models_of, rows_of
from cortex.providers.servers import OTHER, by_id
from tests import model_lists
from tests.model_lists import LLAVA, NOMIC, QWEN, ModelLists, Page, anthropic_pages, openai_row, whole

KEY = "sk-the-whole-key-4711"


def server_of(double: ModelLists, **more: Any) -> ModelServer:
    port = int(double.origin.rpartition(":")[2])
    given = {"provider": "openai", "base_url": double.base_url, "policy": named(("127.0.0.1", port)), "limit_s": 20.0}
    return ModelServer(**{**given, **more})


async def listed(pages: dict[str, Page], **more: Any) -> ModelList:
    with ModelLists(pages=pages, key=str(more.get("key", ""))) as double:
        found = await list_models(server_of(double, **more))
        return replace(found, base_url=found.base_url.replace(double.origin, "here"))


@pytest.mark.parametrize(
    ("body", "server", "first"),
    [
        (
            model_lists.OPENROUTER,
            "openrouter",
            ListedModel(
                id="anthropic/claude-sonnet-4.5",
                label="Claude-Sonnet-4.5",
                context_tokens=200_000,
                max_output_tokens=64_000,
                tools=True,
                sees=True,
                thinks=True,
                price=Price(input_usd=3.0, output_usd=15.0, cached_usd=0.3, written_usd=3.75),
            ),
        ),
        (model_lists.OPENAI, "openai", ListedModel(id="gpt-5-mini", sees=True)),
        (
            model_lists.MISTRAL,
            "mistral",
            ListedModel(id="mistral-small-latest", context_tokens=131_072, tools=True, sees=True, thinks=False),
        ),
        (
            model_lists.GROQ,
            "groq",
            ListedModel(id="openai/gpt-oss-20b", context_tokens=131_072, max_output_tokens=65_536),
        ),
        (
            model_lists.GEMINI,
            "google",
            ListedModel(id="gemini-2.5-flash", label="Gemini 2.5 Flash", sees=True),
        ),
        (model_lists.VLLM, "vllm", ListedModel(id="Qwen/Qwen3-8B", context_tokens=40_960)),
        (
            model_lists.TOGETHER,
            "together",
            ListedModel(
                id="Qwen/Qwen3-235B-A22B",
                label="Qwen3 235B",
                context_tokens=262_144,
                price=Price(input_usd=0.2, output_usd=0.6),
            ),
        ),
        (
            model_lists.XAI,
            "xai",
            ListedModel(id="grok-3", sees=True, price=Price(input_usd=3.0, output_usd=15.0, cached_usd=0.75)),
        ),
        (model_lists.AZURE_DEPLOYMENTS, "azure", ListedModel(id="our-chat", label="gpt-5-mini", sees=True)),
        (model_lists.AZURE_MODELS, "azure", ListedModel(id="gpt-5-mini", sees=True)),
    ],
)
def test_each_makers_list_is_read_with_what_it_says(body: Any, server: str, first: ListedModel) -> None:
    models, _ = models_of(rows_of(body) or (), by_id(server))
    assert models[0] == first


def test_what_does_not_chat_is_left_out_and_what_is_odd_is_harmless() -> None:
    names = {
        "openai": (model_lists.OPENAI, ["gpt-5-mini", "gpt-4o-mini"], 3),
        "groq": (model_lists.GROQ, ["openai/gpt-oss-20b"], 2),
        "mistral": (model_lists.MISTRAL, ["mistral-small-latest"], 1),
        "together": (model_lists.TOGETHER, ["Qwen/Qwen3-235B-A22B", "rented-only"], 2),
        "xai": (model_lists.XAI, ["grok-3"], 1),
        "azure": (model_lists.AZURE_DEPLOYMENTS, ["our-chat"], 2),
        "azure models": (model_lists.AZURE_MODELS, ["gpt-5-mini"], 1),
    }
    for body, kept, left_out in names.values():
        models, others = models_of(rows_of(body) or (), OTHER)
        assert ([model.id for model in models], others) == (kept, left_out)
    odd: list[Any] = [
        {"id": "a\u202eb"}, {"id": "x" * 201}, {"id": "two words"}, {"id": 7}, {}, {"id": "ok", "context_length": True},
        {"id": "ok", "created": "late"}, {"id": "b", "architecture": 3, "capabilities": 4, "pricing": {"prompt": "x"}},
        {"id": "c", "pricing": {"prompt": "1e400", "completion": "nan"}, "top_provider": [], "meta": "m", "name": 3},
        {"id": "d", "pricing": {"prompt": "3", "completion": "15"}},  # of a million, where others say that of one
    ]  # fmt: skip
    models, _ = models_of(odd, OTHER)
    assert [(model.id, model.context_tokens, model.price) for model in models] == [
        (name, None, Price()) for name in ("ok", "b", "c", "d")
    ]
    found, _ = models_of([{"id": "models/big.gguf"}, {"id": "models/gemini-3-pro"}], OTHER)
    assert [model.id for model in found] == ["models/big.gguf", "gemini-3-pro"], "a folder is no way of Google's"
    assert rows_of({"data": "text"}) is None
    assert rows_of([1, {"id": "a"}]) == [{"id": "a"}]


async def test_a_price_that_depends_on_the_way_is_not_known_and_nothing_is_free() -> None:
    found = {model.id: model for model in (await listed({"GET /v1/models": (200, model_lists.OPENROUTER)})).models}
    assert found["openrouter/auto"].price == Price()
    assert found["google/gemma-3n-e4b-it:free"].price == Price(input_usd=0.0, output_usd=0.0)
    assert (found["google/gemma-3n-e4b-it:free"].tools, found["google/gemma-3n-e4b-it:free"].sees) == (False, False)


async def test_ollama_is_asked_about_each_model() -> None:
    found = await listed(model_lists.ollama({"qwen3:8b": 4_096}, qwen3_8b=QWEN, llava_7b=LLAVA, nomic=NOMIC))
    assert found.engine == "ollama"
    assert found.left_out == 1
    facts = {one.id: (one.context_tokens, one.tools, one.sees, one.thinks) for one in found.models}
    assert facts == {"qwen3:8b": (4_096, True, False, True), "llava:7b": (8_192, False, True, False)}


@pytest.mark.parametrize(("trained", "served"), [(40_960, None), (8_192, 8_192), (2_048, 2_048)])
async def test_the_length_that_a_model_was_trained_for_is_not_taken_for_what_ollama_gives_it(
    trained: int, served: int | None
) -> None:
    shown = {**QWEN, "model_info": {"qwen3.context_length": trained}}
    assert (await listed(model_lists.ollama(qwen3_8b=shown))).models[0].context_tokens == served
    (model,) = (await listed(model_lists.ollama({"qwen3:8b": 65_536}, qwen3_8b=shown))).models
    assert model.context_tokens == trained


async def test_lm_studio_says_what_is_loaded_and_how_far() -> None:
    found = await listed(model_lists.LM_STUDIO)
    facts = {one.id: (one.context_tokens, one.tools, one.sees) for one in found.models}
    assert (found.engine, found.left_out) == ("lmstudio", 1)
    assert facts == {"qwen2-vl": (4_096, True, True), "llama": (None, None, False)}


async def test_lm_studios_newer_list_says_the_same_where_the_older_one_is_gone() -> None:
    found = await listed(model_lists.LM_STUDIO_NEWER)
    facts = {one.id: (one.label, one.context_tokens, one.tools, one.sees) for one in found.models}
    assert (found.engine, found.left_out) == ("lmstudio", 1)
    assert facts == {"qwen2-vl": ("Qwen2 VL", 4_096, True, True), "llama": ("Llama", None, None, False)}


async def test_litellm_says_what_each_model_takes_and_costs_and_of_several_behind_a_name_the_least() -> None:
    found = await listed(model_lists.LITELLM)
    claude, house, unknown = found.models
    assert (found.engine, found.left_out, claude.id) == ("litellm", 1, "claude")
    assert (claude.context_tokens, claude.max_output_tokens) == (200_000, 64_000)
    assert (claude.tools, claude.sees, claude.thinks) == (True, True, True)
    assert claude.price == Price(input_usd=3.0, output_usd=15.0, cached_usd=0.3, written_usd=3.75)
    assert (house.context_tokens, house.tools, house.sees, house.price) == (8_192, False, None, Price())
    assert unknown.price == Price(), "0 is what it says of a price that it does not know"


async def test_azure_is_asked_for_its_deployments_by_its_own_header_and_else_for_its_models() -> None:
    with ModelLists(pages=model_lists.AZURE, key=KEY) as double:
        base = f"{double.origin}/openai/v1"
        found = await list_models(server_of(double, base_url=base, key=KEY, engine="azure"))
        assert ([model.id for model in found.models], found.base_url) == (["our-chat"], base)
        assert (found.engine, set(double.headers)) == ("azure", {"api-key"})
        gone: Page = (400, {"error": {"code": "BadRequest", "message": "API version not supported"}})
        double.pages = {**model_lists.AZURE, next(iter(model_lists.AZURE)): gone}
        found = await list_models(server_of(double, base_url=base, key=KEY, engine="azure"))
        assert [model.id for model in found.models] == ["gpt-5-mini"]


async def test_xai_is_asked_for_what_chats_and_where_that_list_is_gone_for_all() -> None:
    with ModelLists(pages={"GET /v1/language-models": (200, model_lists.XAI)}, key=KEY) as double:
        found = await list_models(server_of(double, key=KEY, engine="xai"))
        assert ([model.id for model in found.models], double.headers) == (["grok-3"], ["Authorization"])
        double.pages = {"GET /v1/models": (200, whole(openai_row("grok-3", owner="xai")))}
        assert len((await list_models(server_of(double, key=KEY, engine="xai"))).models) == 1


async def test_vllm_is_known_by_its_list() -> None:
    assert (await listed({"GET /v1/models": (200, model_lists.VLLM)})).engine == "vllm"


async def test_a_server_that_was_something_else_before_is_what_its_pages_say_now() -> None:
    assert (await listed(model_lists.LLAMA_CPP, engine="ollama")).engine == "llamacpp"
    assert (await listed(model_lists.LITELLM, engine="vllm")).engine == "litellm"


async def test_a_file_is_called_by_its_name_and_asked_for_by_its_path() -> None:
    (model,) = (await listed(model_lists.LLAMA_CPP_FILE)).models
    assert (model.id, model.name, model.label) == (model_lists.SMOL_FILE, "SmolLM2-135M-Instruct.Q4_1", "")
    assert (model.context_tokens, model.tools) == (8_192, True)


@pytest.mark.parametrize(
    ("model_id", "name"),
    [
        ("/models/SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct.Q4_1"),
        (r"C:\Users\Ada\My models\Qwen3-8B-Q4_K_M.GGUF", "Qwen3-8B-Q4_K_M"),
        ("models/big-00001-of-00003.gguf", "big"),
        ("/srv/weights/Qwen3-8B/", "Qwen3-8B"),
        ("./qwen", "qwen"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64", "Qwen/Qwen3-8B"),
        ("weights/model.safetensors", "model"),
        ("qwen3-8b.gguf", "qwen3-8b"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("org/small:Q4_K_M", "org/small:Q4_K_M"),
        ("qwen3:8b", "qwen3:8b"),
        (".gguf", ".gguf"),
        ("~google/gemini-flash-latest", "~google/gemini-flash-latest"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64d72725edaf", "Qwen/Qwen3-8B"),
        ("/root/.cache/hub/models--unsloth--gpt-oss-GGUF/snapshots/9c92/gpt-oss-20b-Q4.gguf", "gpt-oss-20b-Q4"),
    ],
)
def test_only_a_path_loses_its_place(model_id: str, name: str) -> None:
    assert ListedModel(id=model_id).name == name


async def test_llama_cpp_with_several_models_tells_of_each_and_is_not_made_to_load_one() -> None:
    with ModelLists(pages=model_lists.LLAMA_CPP_SEVERAL) as double:
        found = await list_models(server_of(double))
        facts = {one.id: (one.context_tokens, one.tools) for one in found.models}
        assert (found.engine, facts) == ("llamacpp", {"org/small:Q4_K_M": (None, None), "big": (32_768, False)})
        assert all("autoload=false" in path for path in double.asked if "?model=" in path)


async def test_llama_cpp_says_what_it_serves_not_what_was_trained() -> None:
    (model,) = (await listed(model_lists.LLAMA_CPP)).models
    assert (model.id, model.context_tokens, model.tools, model.sees) == ("gemma-3-4b", 8_192, True, True)


async def test_anthropics_list_is_read_to_its_last_page_by_its_own_header() -> None:
    found = await listed(anthropic_pages("claude-opus-5", "claude-haiku-5"), provider="anthropic", key=KEY)
    assert [model.id for model in found.models] == ["claude-opus-5", "claude-haiku-5"]
    first = found.models[0]
    assert (first.context_tokens, first.max_output_tokens) == (200_000, 64_000)
    assert (first.tools, first.sees, first.thinks) == (True, True, True)


@pytest.mark.parametrize("typed", ["", "/v1", "/v1/", "/v1/models", "/v1/chat/completions"])
async def test_the_address_may_be_typed_in_several_ways(typed: str) -> None:
    with ModelLists(pages={"GET /v1/models": (200, model_lists.VLLM)}) as double:
        found = await list_models(server_of(double, base_url=double.origin + typed))
        assert found.base_url == double.base_url


HTML = b"<!doctype html><title>Welcome</title>"
REFUSALS: dict[str, tuple[Page, str]] = {
    "401": ((401, {"error": {"message": "Incorrect API key provided: sk-th***4711."}}), "refused the key"),
    "403 text": ((403, "no"), "refused the key"),
    "404": ((404, {"error": "not found"}), "Check the address: most end in /v1"),
    "429": ((429, {"error": {"message": "Slow down."}}), "takes no more requests for now (429). It said: “Slow down.”"),
    "503": ((503, {"error": {"code": 503, "message": "Loading model"}}), "Loading model"),
    "redirect": (
        (302, b"", {"Location": "http://elsewhere.example/v1?token=abc"}),
        "sends on to http://elsewhere.example/v1",
    ),
    "html": ((200, HTML, {"Content-Type": "text/html"}), "not a list of models but text/html"),
    "json": ((200, {"hello": 1}), "not a list of models"),
    "nothing": ((200, {"data": []}), "lists no model that can chat"),
    "only vectors": ((200, whole(openai_row("text-embedding-3-small"))), "lists no model that can chat"),
    "deep": ((200, b'{"data":' * 300), "not a list of models"),
    "hidden": ((418, {"error": {"message": "no\u202e key=" + KEY}}), "⟨U+202E⟩"),
}


@pytest.mark.parametrize(("page", "words"), REFUSALS.values(), ids=REFUSALS)
async def test_each_failure_says_what_the_server_said_and_what_to_do(page: Page, words: str) -> None:
    with ModelLists(pages={"GET /v1/models": page}) as double, pytest.raises(ProviderError) as refused:
        await list_models(server_of(double, key=KEY))
    assert words in refused.value.message
    assert KEY not in refused.value.message
    assert len(refused.value.message) < 600


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    with ModelLists() as other:
        page: Page = (307, b"", {"Location": f"{other.origin}/v1/models"})
        with ModelLists(pages={"GET /v1/models": page}) as double, pytest.raises(ProviderError, match="sends on to"):
            await list_models(server_of(double, key=KEY))
        assert other.asked == []


async def test_who_does_not_answer_is_given_up() -> None:
    with ModelLists(hangs=True) as double, pytest.raises(ProviderError, match=r"did not answer within 0\.2 seconds"):
        await list_models(server_of(double, limit_s=0.2))
    with ModelLists() as gone:
        server = server_of(gone)
    with pytest.raises(ProviderError, match="could not be reached"):
        await list_models(server)


async def test_a_name_outside_without_an_address_is_the_fault_of_this_server_and_one_inside_is_not() -> None:
    with pytest.raises(ProviderError, match=r"could not look up no-such\.example\.invalid: it may have no internet"):
        await list_models(ModelServer(provider="openai", base_url="https://no-such.example.invalid/v1", policy=PUBLIC))
    inside = named(("nobody", 11434))
    with pytest.raises(ProviderError, match=r"could not be reached .*Check that the server runs"):
        await list_models(ModelServer(provider="openai", base_url="http://nobody:11434/v1", policy=inside))


async def test_an_address_that_the_rule_forbids_is_not_asked() -> None:
    with ModelLists(pages={"GET /v1/models": (200, model_lists.VLLM)}) as double:
        with pytest.raises(ProviderError, match="inside a network"):
            await list_models(server_of(double, policy=PUBLIC))
        assert double.asked == []
