"""A share of many cases each day, all of them by `make test-full`."""

from collections.abc import Iterable
from typing import Any

import pytest

DAILY = 4
# For cases that one test goes through: `[::step]` of them.
QUARTER = pytest.mark.parametrize(
    "step", [pytest.param(1, id="all", marks=pytest.mark.full), pytest.param(DAILY, id="a quarter")]
)


def a_quarter_daily(cases: Iterable[Any]) -> list[Any]:
    """Every fourth case, from the first on; the others are marked `full`. They are names, or `pytest.param`s.

    For cases that are alike in what they pass through, where each one costs a house or a server of its own.
    """
    return [case if count % DAILY == 0 else _param(case, pytest.mark.full) for count, case in enumerate(cases)]


def _param(case: Any, mark: pytest.MarkDecorator) -> Any:
    values, id_ = (case.values, case.id) if isinstance(case, type(pytest.param())) else ((case,), None)
    return pytest.param(*values, id=id_, marks=mark)
