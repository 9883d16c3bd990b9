"""What a model wrote, as it is sent: its words and none of its marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.agent.plain_text import LONGEST_CHARACTERS, plain_text

ANSWER = """\
## Today's **plan**

Buy *milk*, `eggs` and [bread](https://shop.example.org/a_b).
2 * 3 * 4 in snake_case, ~~not~~ <b>raw</b>

- one
- **two**
  - deep
- [ ] open
- [x] done

1) first

| What | When |
|---|---|
| Milk | **now** |

```python
x = 1
```

---
> See https://a.example.org and [ada@example.org](mailto:ada@example.org)
"""


def test_an_answer_has_its_words_and_lines_without_the_marks() -> None:
    assert plain_text(ANSWER) == (
        "Today's plan\n\nBuy milk, eggs and bread (https://shop.example.org/a_b).\n"
        "2 * 3 * 4 in snake_case, not <b>raw</b>\n\n• one\n• two\n  • deep\n☐ open\n☑ done\n\n"
        "1) first\n\nWhat · When\nMilk · now\n\n"
        "x = 1\n\nSee https://a.example.org and ada@example.org"
    )


@pytest.mark.parametrize("text", ["", "Just words.", "one\ntwo\n\nthree", "#5 is done", "a_b_c", "5 > 3 < 7"])
def test_what_is_plain_stays_as_it_is(text: str) -> None:
    assert plain_text(text) == text


def test_a_long_answer_is_read_as_far_as_is_sent() -> None:
    assert len(plain_text("word " * LONGEST_CHARACTERS)) < LONGEST_CHARACTERS


@given(st.text(alphabet="ab *_#>-`|[]()\\\n1.~", max_size=200))
def test_any_text_comes_out(text: str) -> None:
    assert isinstance(plain_text(text), str)
