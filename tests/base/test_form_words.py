"""What people read of a value that cannot be: words of Cortex's own, whatever rule was broken."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cortex.base.form_words import what_is_wrong


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    whole: Annotated[int, Field(gt=0, le=9)] = 1
    number: Annotated[float, Field(ge=0.5, lt=2)] = 1.0
    words: Annotated[str, Field(min_length=1, max_length=3, pattern="^[a-z]*$")] = "a"
    several: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] = ("a",)
    choice: Literal["a", "b"] = "a"
    is_on: bool = False
    day: date | None = None
    at: datetime | None = None
    inner: "Form | None" = None
    own: str = ""

    @field_validator("own")
    @classmethod
    def _own_words(cls, value: str) -> str:
        raise ValueError("must rhyme, always")


class Strict(BaseModel):
    due: str


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"whole": "many"}, "must be a whole number"),
        ({"whole": 1.5}, "must be a whole number"),
        ({"whole": None}, "must be a whole number"),
        ({"whole": "0"}, "must be more than 0"),
        ({"whole": 10}, "must be at most 9"),
        ({"number": "x"}, "must be a number"),
        ({"number": 0.25}, "must be at least 0.5"),
        ({"number": "2"}, "must be less than 2"),
        ({"words": 5}, "must be text"),
        ({"words": ""}, "must have at least 1 character"),
        ({"words": "abcd"}, "must have at most 3 characters"),
        ({"words": "A"}, "contains characters that are not allowed"),
        ({"several": "abc"}, "must be a list"),
        ({"several": []}, "must have at least 1 entry"),
        ({"several": ["a"] * 3}, "must have at most 2 entries"),
        ({"choice": "c"}, "must be 'a' or 'b'"),
        ({"is_on": "perhaps"}, "must be yes or no"),
        ({"day": "soon"}, "must be a date, such as 2026-11-23"),
        ({"at": "soon"}, "must be a date and time, such as 2026-11-23T09:30"),
        ({"inner": 5}, "must be an object, {…}"),
        ({"own": "prose"}, "must rhyme, always"),
        ({"colour": "red"}, "is not known here"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_each_rule_has_words_for_people(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Form.model_validate(values)
    assert [what_is_wrong(fault) for fault in refused.value.errors()] == [words]


def test_what_is_missing_is_needed_and_what_is_no_json_says_so() -> None:
    with pytest.raises(ValidationError) as missing:
        Strict.model_validate({})
    with pytest.raises(ValidationError) as broken:
        Strict.model_validate_json("{")
    assert [what_is_wrong(fault) for error in (missing, broken) for fault in error.value.errors()] == [
        "is needed",
        "is not JSON",
    ]
