"""Kinds of models are files, loaded on first use."""

import subprocess
import sys

import pytest

from cortex.base.errors import UserError
from cortex.base.model import ModelEntry
from cortex.providers import connect

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


@pytest.mark.parametrize("kind", ["", "egress", "pydantic", "no_such", "../offline", "os"])
def test_an_unknown_kind_is_told(kind: str) -> None:
    with pytest.raises(UserError, match="Unknown API type"):
        connect(ModelEntry(name="x", provider=kind))
