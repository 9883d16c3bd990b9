"""What a model server did not take is read from its own words, as real ones wrote them.

`refusals.json` has the bodies as people reported them, each with its source; those that are later were written down
after the patterns that read them.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cortex.base.model import ModelEntry
from cortex.providers.rejections import rejection, sentence_of
from cortex.providers.servers import OTHER, by_id

ENTRY = ModelEntry(name="house", provider="openai", model="some-model")
REFUSALS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("refusals.json").read_text())


@pytest.mark.parametrize("heard", REFUSALS, ids=lambda heard: heard["name"])
def test_what_was_refused_is_read_from_the_body(heard: dict[str, Any]) -> None:
    body, limits = heard["body"], heard.get("limits", {})
    is_page = isinstance(body, str)
    found = rejection(
        by_id(heard.get("row", "other")),
        heard["status"],
        None if is_page else body,
        body if is_page else json.dumps(body),
    )
    assert found is not None
    assert (found.what, {name: getattr(found, name) for name in limits}) == (heard["what"], limits)
    assert found.said
    assert found.said[:20] in sentence_of(ENTRY, found)


@pytest.mark.parametrize(
    ("status", "body", "what"),
    [
        (429, {"error": {"message": "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used "
                                    "99000, Requested 12000. Please try again in 2h."}}, "overloaded"),
        (402, {"error": {"message": "Payment needed"}}, "credit"),
        (503, {"error": "no room"}, "overloaded"),
        (400, {"error": {"message": "Your order of pizza is refused"}}, "other"),
        (400, {"error": {"message": "temperature must be a number"}}, "other"),
    ],
)  # fmt: skip
def test_what_is_no_matter_of_length_or_form_is_not_taken_for_it(status: int, body: Any, what: str) -> None:
    found = rejection(OTHER, status, body, json.dumps(body))
    assert found is not None
    assert (found.what, found.window_tokens) == (what, None)


def test_a_window_in_which_no_chat_goes_is_not_believed() -> None:
    for said in ("maximum context length is 64 tokens", "maximum context length is 255 tokens", "context limit is 0"):
        found = rejection(OTHER, 400, {"error": {"message": f"The prompt is too long: {said}."}}, "")
        assert found is not None
        assert (found.what, found.window_tokens) == ("window", None), said


@pytest.mark.parametrize(("body", "text"), [(None, ""), ({}, "{}"), ([], "[]"), (None, "<p>no title</p>")])
def test_where_nothing_was_said_there_is_nothing_to_read(body: Any, text: str) -> None:
    assert rejection(OTHER, 400, body, text) is None


def test_a_body_that_repeats_the_request_for_ever_costs_no_time_and_no_crash() -> None:
    deep: Any = "end"
    for _ in range(50):
        deep = {"error": deep}
    assert rejection(OTHER, 400, deep, "") is None
    long = {"error": {"message": "`tools` " * 200_000 + "maximum context length is 10 tokens"}}
    found = rejection(OTHER, 400, long, "")
    assert found is not None
    assert found.window_tokens is None, "what stands behind is the request, no word of the server's"
    assert len(found.said) < 300


def test_keys_are_in_no_sentence() -> None:
    found = rejection(OTHER, 400, {"error": {"message": "bad header: Bearer sk-abcdef1234567890abcdef is refused"}}, "")
    assert found is not None
    assert "abcdef1234567890" not in sentence_of(ENTRY, found)
