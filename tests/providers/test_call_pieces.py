"""Tool calls are put together from their pieces, however a server numbers them; one call is never split."""

import json
from typing import Any

import pytest

from cortex.providers.call_pieces import CallPieces

NO = "none"


def piece(index: Any, call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """A piece; what is `NO` does not stand in it."""
    given = {"index": index, "id": call_id}
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value != NO}
    return {key: value for key, value in given.items() if value != NO} | {"function": function}


def made(*pieces: dict[str, Any]) -> list[tuple[str, Any]]:
    """The name and the arguments of each call."""
    calls = CallPieces()
    for one in pieces:
        calls.add(one)
    return [(call.name, json.loads(call.arguments)) for call, _ in calls.calls()]


A, B = ("light_on", {"room": "hall"}), ("task_create", {"title": "milk"})
A_TEXT, B_TEXT = json.dumps(A[1]), json.dumps(B[1])


@pytest.mark.parametrize(
    "pieces",
    [
        (piece(0, "a", A[0], ""), piece(0, NO, NO, A_TEXT), piece(1, "b", B[0], ""), piece(1, NO, NO, B_TEXT)),
        (piece(0, "a", A[0], A_TEXT), piece(0, "b", B[0], B_TEXT)),
        (piece(NO, "a", A[0], A_TEXT), piece(NO, "b", B[0], B_TEXT)),
        (piece(NO, NO, A[0], A_TEXT), piece(NO, NO, B[0], B_TEXT)),
        (piece(0, "", A[0], A[1]), piece(0, "", B[0], B[1])),
        (piece(0, None, A[0], ""), piece(0, None, None, A_TEXT), piece(0, None, B[0], B_TEXT)),
        (piece(0, "same", A[0], A_TEXT), piece(1, "same", B[0], B_TEXT)),
        (piece(0, "a", A[0], ""), piece(1, "b", B[0], ""), piece(0, NO, NO, A_TEXT), piece(1, NO, NO, B_TEXT)),
        (piece(0, "a", A[0], ""), piece(0, "a", NO, A_TEXT), piece(0, "b", B[0], ""), piece(0, "b", NO, B_TEXT)),
        (piece(0, "a", A[0], A_TEXT[:5]), piece(1, "b", B[0], B_TEXT), piece(0, "a", NO, A_TEXT[5:])),
        (piece("0", "a", A[0], A_TEXT), piece("1", "b", B[0], B_TEXT)),
    ],
    ids=["by the book", "all zero", "no number", "no number, no id", "empty ids, objects", "nulls", "one id",
         "interleaved", "zero with ids", "cut in both", "numbers in words"],
)  # fmt: skip
def test_calls_side_by_side_stay_two(pieces: tuple[dict[str, Any], ...]) -> None:
    assert made(*pieces) == [A, B]


@pytest.mark.parametrize(
    "pieces",
    [
        (piece(0, "a", A[0], ""), piece(0, "b", A[0], A_TEXT[:4]), piece(0, "c", A[0], A_TEXT[4:])),
        (piece(0, "a", A[0], A_TEXT[:4]), piece(1, NO, NO, A_TEXT[4:7]), piece(2, NO, NO, A_TEXT[7:])),
        (piece(NO, NO, A[0], A_TEXT[:4]), piece(NO, NO, A[0], A_TEXT[4:])),
        (piece(0, "a", A[0], A_TEXT[:4]), piece(1, "a", A[0], A_TEXT[4:])),
        (piece(0, "", A[0], A_TEXT[:4]), piece(0, "late", NO, A_TEXT[4:])),
        (piece(0, "a", A[0], A_TEXT), piece(0, "a", NO, "")),
        (piece(0, "a", NO, ""), piece(0, NO, A[0], A_TEXT)),
    ],
    ids=["a new id each", "a new number each", "the name each", "id stays, number grows", "id later", "an empty end",
         "name later"],
)  # fmt: skip
def test_one_call_stays_one(pieces: tuple[dict[str, Any], ...]) -> None:
    assert made(*pieces) == [A]


def test_what_else_a_server_says_of_a_call_is_kept_with_it() -> None:
    calls = CallPieces()
    signed = {"google": {"thought_signature": "c2ln"}}
    calls.add({**piece(0, "a", A[0], A_TEXT), "type": "function", "extra_content": signed})
    assert [extra for _, extra in calls.calls()] == [{"extra_content": signed}]


def test_what_is_no_call_is_none() -> None:
    assert made({}, {"function": None}, {"index": 0, "function": {"arguments": "{}"}}) == []
