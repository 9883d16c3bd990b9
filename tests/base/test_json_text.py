"""JSON that somebody else wrote: read, or refused with one kind of error."""

import pytest

from cortex.base.json_text import parsed

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
