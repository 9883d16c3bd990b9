"""Choosing, searching and a refit need no numpy; fitting all anew and the sentence model do, and are extras."""

import re
import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
MAY = {  # they are loaded where somebody asked for an extra
    "cortex/integrations/sentence_model.py",
    "cortex/selection/model/fit.py",
    "cortex/selection/model/ridge.py",
}
CHOOSES = """
import random, sys
sys.modules["numpy"] = None
from cortex.selection.discover import RANKINGS
from cortex.selection.model import refit, weights
from cortex.selection.recipes import RECIPES
from tests.bench.catalogues import joined
from tests.bench.ground import ground
from tests.bench.measures.plan import _made

own = ground()
over = own.over(joined(own.snapshot, _made(40, random.Random(7))))
for name in RECIPES:
    over.planned(over.asked("add milk to my shopping list", name))
assert over.planned(over.asked("add milk to my shopping list", "cortex")).sent
for name, rank in RANKINGS.items():
    assert rank("shopping list", over.snapshot, over.ready, 5), name
case = refit.OwnCase(text="feed the dragon", tools=("ha_call_service",))
assert refit.refitted(weights.shipped(), [case]) is not weights.shipped()
"""


def test_tools_are_chosen_and_searched_by_every_recipe_without_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHOOSES], cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr


def test_only_what_an_extra_brings_imports_numpy() -> None:
    paths = (path for room in ("cortex", "web", "migrations") for path in (ROOT / room).rglob("*.py"))
    told = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    assert {name for name, code in told.items() if re.search(r"^\s*(?:import|from) numpy", code, re.MULTILINE)} == MAY
