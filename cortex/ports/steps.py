"""Durable steps: a method marked with `@step` runs once in a run, its result is kept and replayed.

Outside a run, and inside another step, the call goes straight through. The engine fills `current`; whoever calls a
step imports nothing of it.
"""

import functools
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, ParamSpec, Protocol, TypeVar

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Steps(Protocol):
    """The store for the results of one run's steps."""

    async def keep(self, title: str, action: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the action once and keep what it returns or raises; on replay, what was kept."""
        ...


current: ContextVar[Steps | None] = ContextVar("cortex_steps", default=None)
# Whether the run was begun in this life of the process: nothing of an earlier try of it can be there.
is_first_life: ContextVar[bool] = ContextVar("cortex_first_life", default=False)
# Whether the run begins in the moment in which it is started, and neither stands in line nor is taken up.
begins_at_once: ContextVar[bool] = ContextVar("cortex_begins_at_once", default=False)


Method = Callable[Params, Coroutine[Any, Any, Result]]


def step(title: str) -> Callable[[Method[Params, Result]], Method[Params, Result]]:
    """Mark an async method as a step. `title` is kept with every run: it stays when the method is renamed.

    Arguments are not kept: a run calls its steps with the same ones when it is replayed. What a step returns, and the
    errors it may raise, are those of `ports/stored_names.py`.
    """

    def marked(method: Method[Params, Result]) -> Method[Params, Result]:
        @functools.wraps(method)
        async def call(*args: Params.args, **kwargs: Params.kwargs) -> Result:
            steps = current.get()
            if steps is None:
                return await method(*args, **kwargs)
            return await steps.keep(title, lambda: method(*args, **kwargs))

        return call

    return marked
