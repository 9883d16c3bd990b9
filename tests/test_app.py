"""The halves of the house that share a database with others of their kind."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.errors import ConfigError
from cortex.base.settings import Settings, load_settings


@pytest.mark.names_its_database("a file where a server is needed")
@pytest.mark.parametrize("half", [Cortex.web, Cortex.worker], ids=["web", "worker"])
@pytest.mark.parametrize(
    "given",
    [{}, {"database_url": "postgresql://localhost/cortex", "engine_url": "sqlite:///engine.db"}],
    ids=["sqlite", "engine on sqlite"],
)
async def test_a_database_of_one_process_is_refused_with_what_to_do(
    half: Callable[[Settings], AbstractAsyncContextManager[Cortex]], given: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"CORTEX_DATABASE_URL: .* PostgreSQL .* `cortex serve`"):
        async with half(load_settings(None, home=tmp_path, **given)):
            raise AssertionError("must not be reached")


@pytest.mark.parametrize("half", [Cortex.open, Cortex.web, Cortex.worker], ids=["serve", "web", "worker"])
async def test_a_database_that_does_not_answer_is_one_line(
    half: Callable[[Settings], AbstractAsyncContextManager[Cortex]], tmp_path: Path
) -> None:
    settings = load_settings(None, home=tmp_path, database_url="postgresql://x:hidden-word@127.0.0.1:1/x")
    with pytest.raises(ConfigError, match="CORTEX_DATABASE_URL: the database does not answer: ") as caught:
        async with half(settings):
            raise AssertionError("must not be reached")
    assert "hidden-word" not in caught.value.message
    assert "\n" not in caught.value.message
