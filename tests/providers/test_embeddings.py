"""Embeddings are asked for as each server takes them: where, and in which header the key goes."""

from urllib.parse import urlsplit

import pytest

from cortex.base.address import named
from cortex.base.errors import ProviderError
from cortex.ports.model_lists import EmbeddingRequest, ModelServer
from cortex.providers import embed
from tests.embedding_server import KEY, MODEL, EmbeddingServer, vector


def request(server: EmbeddingServer, path: str, engine: str, key: str = KEY) -> EmbeddingRequest:
    base_url = server.base_url.removesuffix("/v1") + path
    place = ("127.0.0.1", urlsplit(base_url).port or 0)
    asked = ModelServer(provider="openai", base_url=base_url, key=key, engine=engine, policy=named(place), limit_s=20)
    return EmbeddingRequest(server=asked, model=MODEL, inputs=["abc"])


@pytest.mark.parametrize(
    ("path", "engine", "asked"),
    [
        ("/v1", "", "/v1/embeddings"),
        ("/openai/v1", "azure", "/openai/v1/embeddings"),
        (
            "/openai/deployments/ours",
            "azure",
            "/openai/deployments/ours/embeddings?api-version=2024-10-21",
        ),
    ],
    ids=["any", "azure", "azure, older"],
)
async def test_each_server_is_asked_where_and_with_the_key_as_it_wants(path: str, engine: str, asked: str) -> None:
    with EmbeddingServer() as server:
        assert [vector("abc", 4)] == [list(one) for one in (await embed(request(server, path, engine))).vectors]
        assert server.paths == [asked]


async def test_a_refused_key_says_what_to_do() -> None:
    with EmbeddingServer() as server, pytest.raises(ProviderError, match=r"refused the key.*Copy the whole key again"):
        await embed(request(server, "/v1", "", key="another"))
