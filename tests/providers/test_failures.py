"""What an endpoint said is told with its words and without its keys."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base.model import ModelEntry
from cortex.providers.failures import Unwanted, mapped
from cortex.providers.servers import OTHER, by_id
from cortex.providers.terms import Terms

TERMS = Terms(entry=ModelEntry(name="m", provider="openai", model="gpt-5"), row=OTHER, name="m")
SIGNS = string.ascii_letters + string.digits
WAYS = (
    "Incorrect API key provided: {}. You can find your API key in your account.",
    "Invalid api_key={}",
    "bad header Authorization: Bearer {}",
    "the key {} is not known here",
    "key: {}",
    'refused {{"api_key": "{}"}}',
    "token '{}' has expired",
)


def said(words: str) -> str:
    """What the person reads when an endpoint refuses with these words."""
    error = Unwanted(400, json.dumps({"error": {"message": words}}), {})
    return mapped(TERMS, error).message.partition("It said: ")[2]


@pytest.mark.parametrize(
    "words",
    [
        "Incorrect API key provided.",
        "Incorrect API key provided",
        "You didn't provide an API key in your request.",
        "Invalid Authentication: the API key header is missing.",
        "Missing Bearer authentication in header",
        "Bearer token required",
        "The key parameter is unknown: remove it.",
        "Unknown key temperature in the request",
        "This key doesn't have access to model gpt-4o-mini-2024-07-18.",
        "maximum context length is 128000 tokens, your messages have 131072 tokens",
        "token limit: 128000 reached",
        "max_tokens: 4096 is more than claude-3-5-sonnet-20241022 allows",
        "model claude-3-5-sonnet-20241022 was not found (req_011CQabcDEF)",
        "key-value pairs are not allowed here",
        "sk is no language that I know",
        "a secret ingredient, a password policy",
    ],
)
def test_words_stay(words: str) -> None:
    assert said(words) == words


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Incorrect API key provided: sk-ab***xyz.", "Incorrect API key provided: …."),
        ("Incorrect API key provided: abcd1234********efgh. Find it.", "Incorrect API key provided: …. Find it."),
        ("Incorrect API key provided: sk-proj-a_B-9. Find it.", "Incorrect API key provided: …. Find it."),
        ("Authorization: Bearer abc123def was refused", "Authorization: Bearer … was refused"),
        ("Bearer eyJhbGciOi.eyJzdWIi.c2lnbmF0 is no token", "Bearer … is no token"),
        ("api_key=abcdefghij is wrong", "api_key=… is wrong"),
        ('{"token": "abcdefghij"}', '{"token": "…"}'),
        ("key: abc123def456, try another", "key: …, try another"),
        ("x-api-key: 0a1b2c3d4e", "x-api-key: …"),
        ("the pk_live_abcDEF was revoked", "the … was revoked"),
    ],
)
def test_keys_go_and_the_sentence_stays(words: str, told: str) -> None:
    assert said(words) == told


@given(
    way=st.sampled_from(WAYS),
    key=st.text(SIGNS, min_size=12, max_size=60).filter(
        lambda key: any(sign.isdigit() for sign in key) and any(sign.isalpha() for sign in key)
    ),
    prefix=st.sampled_from(["", "sk-", "sk-proj-", "sk-ant-api03-", "pk-"]),
)
def test_no_key_is_ever_told(way: str, key: str, prefix: str) -> None:
    assert key not in said(way.format(prefix + key))


@given(words=st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=9), min_size=1, max_size=12))
def test_plain_words_about_a_key_are_never_taken_away(words: list[str]) -> None:
    sentence = f"the API key {' '.join(words)}"
    assert said(sentence) == sentence


@pytest.mark.parametrize(
    ("words", "headers", "wait_s"),
    [
        ("You exceeded your current quota, please check your plan. Please retry in 20.5s.", {}, 20.5),
        ("You exceeded your current quota, please check your plan. Please retry in 20s.", {"retry-after": "3"}, 3.0),
        ("You exceeded your current quota, please check your plan and billing details.", {}, None),
        ("You exceeded your current quota. Please try again in 7m30s.", {}, None),
    ],
)
def test_googles_limit_of_a_minute_is_waited_for_and_is_no_empty_account(
    words: str, headers: dict[str, str], wait_s: float | None
) -> None:
    body = [{"error": {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED"}}]
    found = mapped(replace(TERMS, row=by_id("google")), Unwanted(429, json.dumps(body), headers))
    assert (found.kind, found.is_retryable, found.retry_after_s) == ("rate_limit", True, wait_s)
    assert not mapped(TERMS, Unwanted(429, json.dumps(body), headers)).is_retryable, "elsewhere it is the account"
