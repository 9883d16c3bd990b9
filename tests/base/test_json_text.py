"""JSON that somebody else wrote: read, or refused with one kind of error."""

import json
from contextlib import suppress
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.json_text import must_be_small, parsed

BAD = {
    "nothing": "",
    "no JSON": "milk",
    "half a surrogate": '"\ud800"',
    "half a surrogate, escaped": '"\\ud800"',
    "half a letter": b'"\xc3"',
    "too deep": "[" * 100_000,
    "too deep and closed": "[" * 1_000 + "]" * 1_000,
    "too long a number": "1" * 5_000,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed(text)


def test_text_and_bytes_say_the_same() -> None:
    assert parsed('{"a": ["ü", 1, null]}') == parsed('{"a": ["ü", 1, null]}'.encode()) == {"a": ["ü", 1, None]}


def _counted(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_counted, inside)) + (len(value) if isinstance(value, dict) else 0)


def _levels(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(_levels, inside), default=0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


@given(JSON)
def test_what_is_small_passes_and_what_is_large_does_not(value: Any) -> None:
    for body in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False, indent=1).encode()):
        must_be_small(body, items=2 * _counted(value), levels=_levels(value))
        if _levels(value):
            with pytest.raises(ValueError, match="too deeply"):
                must_be_small(body, items=2 * _counted(value), levels=_levels(value) - 1)
        if (count := _counted(value)) > 3:
            with pytest.raises(ValueError, match="too many items"):
                must_be_small(body, items=count // 3 - 1)


OPEN = [b'["' + b'\\"' * 500_000, b"\\" * 900_000, b'{"a":"' + b"\\\\" * 400_000]


@pytest.mark.parametrize("body", OPEN)
def test_an_open_string_is_one_string(body: bytes) -> None:
    must_be_small(body, items=10)


RUNS = [b"1" * 400, b"." * 400, b"1." + b"1" * 398, b"1e11" * 100, b"e" * 400]


@pytest.mark.parametrize("run", RUNS)
def test_numbers_are_looked_at_once(run: bytes) -> None:
    """By a pattern, which lets nothing else run meanwhile: begun again at each digit, it took two megabytes 5 s."""
    begun_s = thread_time()
    with suppress(ValueError):
        must_be_small(b"[" + b",".join([run] * 4_900) + b"]", items=10_000)
    assert thread_time() - begun_s < 1


def test_strings_without_a_sign_between_them_are_items() -> None:
    """To join the pieces between them held 80 MB."""
    with pytest.raises(ValueError, match="too many items"):
        must_be_small(b'"' * 1_000_000, items=10_000)


@pytest.mark.parametrize("number", ["1" * 401, "1e400", "-1E+999999", "0." + "0" * 500, "NaN", "-Infinity"])
def test_a_number_that_nothing_can_hold_is_named(number: str) -> None:
    with pytest.raises(ValueError, match="number that is too large"):
        must_be_small(f'{{"a": [{number}]}}'.encode(), items=10)
    must_be_small(json.dumps({"a": number}).encode(), items=10)


@pytest.mark.parametrize("number", ["1" * 400, "1.7976931348623157e+308", "1e-999", "-0.5e10"])
def test_any_other_number_passes(number: str) -> None:
    must_be_small(f'{{"a": [{number}]}}'.encode(), items=10)
