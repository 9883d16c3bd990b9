"""Why a cache did not hold: one table a question, the facts of two requests against what was reported."""

from typing import get_args

import pytest
from msgspec.structs import replace

from cortex.base.messages import Usage
from cortex.base.model import Profile
from cortex.services.models.cache_misses import WORDS, Outcome, Sight, verdict

CACHED = Profile(caches=True, read_factor=0.1, write_factor=1.25, minimum_tokens=1024, life_s=300)
SILENT = Profile()
BEFORE = Sight(model="m", tools="t1", system="s1", history="h1", input_tokens=4000)
NOW = replace(BEFORE, input_tokens=0)
COLD = Usage(input_tokens=4500, output_tokens=90)
WARM = replace(COLD, cached_tokens=3840)


@pytest.mark.parametrize(
    ("now", "before", "idle_s", "usage", "profile", "outcome"),
    [
        pytest.param(NOW, None, 0, COLD, CACHED, "first", id="the first request"),
        pytest.param(NOW, None, 0, WARM, CACHED, "hit", id="the first, but another conversation warmed it"),
        pytest.param(NOW, BEFORE, 20, WARM, CACHED, "hit", id="extended and in time"),
        pytest.param(NOW, BEFORE, 20, replace(COLD, cached_tokens=1024), CACHED, "unexplained", id="a small part only"),
        pytest.param(NOW, BEFORE, 301, COLD, CACHED, "expired", id="too late"),
        pytest.param(replace(NOW, tools="t2"), BEFORE, 20, COLD, CACHED, "tools", id="other tools"),
        pytest.param(replace(NOW, tools="t2"), BEFORE, 900, COLD, CACHED, "expired", id="other tools, but it was gone"),
        pytest.param(replace(NOW, system="s2"), BEFORE, 20, COLD, CACHED, "system", id="another system text"),
        pytest.param(replace(NOW, history="h2"), BEFORE, 20, COLD, CACHED, "history", id="compacted"),
        pytest.param(NOW, replace(BEFORE, is_replaced=True), 20, COLD, CACHED, "history", id="said anew"),
        pytest.param(replace(NOW, model="n"), BEFORE, 20, COLD, CACHED, "model", id="another model"),
        pytest.param(replace(NOW, model="n"), BEFORE, 900, COLD, CACHED, "model", id="another model, late"),
        pytest.param(NOW, replace(BEFORE, input_tokens=900), 20, COLD, CACHED, "short", id="short before"),
        pytest.param(NOW, BEFORE, 20, replace(COLD, input_tokens=800), CACHED, "short", id="short now"),
        pytest.param(NOW, BEFORE, 20, COLD, CACHED, "unexplained", id="nothing changed"),
        pytest.param(NOW, BEFORE, 20, COLD, SILENT, "uncached", id="nothing is cached there"),
        pytest.param(NOW, None, 0, COLD, SILENT, "uncached", id="nothing is cached there, first"),
        pytest.param(NOW, BEFORE, 20, WARM, SILENT, "hit", id="a cache that nobody knew of"),
    ],
)
def test_the_outcome(
    now: Sight, before: Sight | None, idle_s: float, usage: Usage, profile: Profile, outcome: Outcome
) -> None:
    assert verdict(now, before, idle_s, usage, profile).outcome == outcome


@pytest.mark.parametrize(
    ("now", "kept"),
    [
        pytest.param(NOW, 4000, id="all of it"),
        pytest.param(replace(NOW, tools="t2"), 0, id="the tools changed"),
        pytest.param(replace(NOW, history="h2"), 0, id="the history changed"),
    ],
)
def test_what_was_sent_before_unchanged_is_what_a_cache_is_judged_by(now: Sight, kept: int) -> None:
    assert verdict(now, BEFORE, 20, COLD, CACHED).kept_tokens == kept


def test_a_shorter_request_kept_no_more_than_it_has() -> None:
    assert verdict(NOW, BEFORE, 20, replace(COLD, input_tokens=3000), CACHED).kept_tokens == 3000


def test_every_outcome_has_words() -> None:
    assert set(WORDS) == set(get_args(Outcome))
