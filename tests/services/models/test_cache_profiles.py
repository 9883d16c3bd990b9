"""What is known of a provider's cache: what ships, and what its reports teach, carefully."""

import random

import pytest
from msgspec.structs import replace

from cortex.base.model import Profile
from cortex.services.models.endpoint_caches import is_native, learned, shipped
from cortex.storage.round_rows import CacheSample

BASE = Profile(caches=True, read_factor=0.1, write_factor=1.25, minimum_tokens=1024, life_s=300, late_tools="bridge")
LOCAL = replace(BASE, read_factor=0.0, minimum_tokens=1)


def sample(idle_s: float, is_hit: bool, tokens: int = 4000) -> CacheSample:
    cached = tokens - 100 if is_hit else 0
    return CacheSample(idle_s=idle_s, kept_tokens=tokens, cached_tokens=cached)


@pytest.mark.parametrize(
    ("provider", "model", "host", "is_inside", "told"),
    [
        pytest.param("anthropic", "claude-sonnet-4-5", "", False, (True, 0.1, 1.25, 1024), id="Sonnet 4.5"),
        pytest.param("anthropic", "claude-opus-4-6", "", False, (True, 0.1, 1.25, 4096), id="Opus 4.6"),
        pytest.param("anthropic", "claude-haiku-4-5-20251001", "", False, (True, 0.1, 1.25, 4096), id="Haiku 4.5"),
        pytest.param("anthropic", "claude-3-5-haiku-latest", "", False, (True, 0.1, 1.25, 2048), id="Haiku 3.5"),
        pytest.param("openai", "gpt-5-mini", "", False, (True, 0.1, 1.0, 1024), id="GPT-5"),
        pytest.param("openai", "gpt-5.6", "", False, (True, 0.1, 1.25, 1024), id="GPT-5.6 charges for writes"),
        pytest.param("openai", "gpt-4.1", "api.openai.com", False, (True, 0.25, 1.0, 1024), id="GPT-4.1"),
        pytest.param("openai", "o4-mini", "api.openai.com", False, (True, 0.25, 1.0, 1024), id="o4"),
        pytest.param("openai", "gpt-4o", "", False, (True, 0.5, 1.0, 1024), id="GPT-4o"),
        pytest.param(
            "openai", "our-chat", "us.services.ai.azure.com", False, (True, 0.1, 1.0, 1024), id="Azure Foundry"
        ),
        pytest.param("openai", "deepseek-chat", "api.deepseek.com", False, (True, 0.1, 1.0, 64), id="DeepSeek"),
        pytest.param("openai", "x-ai/grok-4", "openrouter.ai", False, (True, 0.25, 1.0, 1024), id="Grok, OpenRouter"),
        pytest.param("openai", "anthropic/claude-x", "openrouter.ai", False, (False, 1.0, 1.0, 1024), id="unmarked"),
        pytest.param("openai", "who/knows", "openrouter.ai", False, (True, 0.25, 1.0, 1024), id="OpenRouter, unknown"),
        pytest.param("openai", "gpt-5", "cheap.example", False, (False, 1.0, 1.0, 1024), id="a host nobody knows"),
        pytest.param(
            "openai", "gpt-5", "evil-openai.com", False, (False, 1.0, 1.0, 1024), id="a host that looks alike"
        ),
        pytest.param("openai", "qwen3", "127.0.0.1", True, (True, 0.0, 1.0, 1), id="a slot in this house"),
    ],
)
def test_what_ships(
    provider: str, model: str, host: str, is_inside: bool, told: tuple[bool, float, float, int]
) -> None:
    found = shipped(provider, model, host, is_inside=is_inside)
    assert (found.caches, found.read_factor, found.write_factor, found.minimum_tokens) == told


def test_too_few_samples_teach_nothing() -> None:
    found = learned(BASE, [sample(900, is_hit=True)] * 11)
    assert (found.profile, found.samples, found.hits, found.changed) == (BASE, 11, 11, ())


def test_samples_that_agree_with_the_shipped_profile_change_nothing() -> None:
    samples = [sample(20, is_hit=True)] * 20 + [sample(900, is_hit=False)] * 5 + [sample(9, is_hit=False, tokens=500)]
    assert learned(BASE, samples).profile == BASE


def test_a_longer_life_is_believed_as_far_as_hits_were_seen() -> None:
    samples = [sample(30, is_hit=True)] * 10 + [sample(idle_s, is_hit=True) for idle_s in (1200, 1500, 1700)]
    samples += [sample(4000, is_hit=False)] * 3
    found = learned(BASE, samples)
    assert (found.profile.life_s, found.changed) == (1700, ("life_s",))


def test_a_shorter_life_is_believed_where_both_sides_were_seen() -> None:
    samples = [sample(idle_s, is_hit=True) for idle_s in range(10, 100, 10)]
    samples += [sample(idle_s, is_hit=False) for idle_s in (150, 180, 200, 240)]
    assert learned(BASE, samples).profile.life_s == 90


def test_two_odd_misses_do_not_shorten_a_life() -> None:
    samples = [sample(40, is_hit=True)] * 20 + [sample(150, is_hit=False)] * 2
    assert learned(BASE, samples).profile == BASE


def test_a_higher_least_length_is_learned_from_warm_requests() -> None:
    samples = [sample(5, is_hit=False, tokens=tokens) for tokens in (1100, 1500, 1900, 2000)]
    samples += [sample(5, is_hit=True, tokens=tokens) for tokens in range(2048, 6000, 400)]
    assert learned(BASE, samples).profile.minimum_tokens == 2048


def test_a_lower_least_length_is_learned_too() -> None:
    samples = [sample(5, is_hit=True, tokens=tokens) for tokens in (300, 400, 500, *range(1100, 5000, 400))]
    assert learned(BASE, samples).profile.minimum_tokens == 300


def test_a_seller_of_cached_tokens_that_never_reports_any_has_no_cache() -> None:
    silent = [sample(5, is_hit=False)] * 20
    assert learned(BASE, silent).profile.caches is False
    assert learned(BASE, silent[:19]).profile.caches is True


def test_a_slot_of_this_house_may_be_silent() -> None:
    assert learned(LOCAL, [sample(5, is_hit=False)] * 40).profile.caches is True


def test_a_cache_that_nobody_knew_of_is_used_at_a_careful_price() -> None:
    found = learned(Profile(), [sample(5, is_hit=True)] * 12)
    assert (found.profile.caches, found.profile.read_factor, found.changed[0]) == (True, 0.5, "caches")


def test_what_a_person_typed_is_never_overruled() -> None:
    samples = [sample(5, is_hit=False)] * 40
    assert learned(BASE, samples, fixed=("caches",)).profile.caches is True
    longer = [sample(30, is_hit=True)] * 10 + [sample(1500, is_hit=True)] * 4
    assert learned(BASE, longer, fixed=("life_s",)).profile.life_s == 300


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_samples_does_not_matter_and_prices_are_never_learned(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a seeded shuffle, guards nothing
    samples = [
        sample(dice.uniform(1, 3000), is_hit=dice.random() < 0.6, tokens=dice.randint(100, 9000)) for _ in range(60)
    ]
    found = learned(BASE, samples)
    dice.shuffle(samples)
    assert learned(BASE, samples) == found
    assert (found.profile.read_factor, found.profile.write_factor) == (0.1, 1.25)
    assert 30 <= found.profile.life_s <= 86_400


@pytest.mark.parametrize(
    ("provider", "model", "host", "thinks", "native"),
    [
        ("anthropic", "claude-opus-5-20260801", "", True, True),
        ("anthropic", "claude-sonnet-5-5", "api.anthropic.com", True, True),
        ("anthropic", "claude-sonnet-4-6", "", False, True),
        ("anthropic", "claude-sonnet-4-6", "", True, False),
        ("anthropic", "claude-3-5-haiku", "", False, False),
        ("anthropic", "claude-opus-5", "proxy.example", False, False),
        ("openai", "gpt-5.4", "", True, True),
        ("openai", "gpt-6-sol", "api.openai.com", False, True),
        ("openai", "gpt-5.4-nano", "", False, False),
        ("openai", "gpt-4o", "", False, False),
        ("openai", "gpt-5.5", "openrouter.ai", False, False),
    ],
)
def test_who_declares_tools_late_by_itself(provider: str, model: str, host: str, thinks: bool, native: bool) -> None:
    assert is_native(provider, model, host, thinks=thinks) is native
