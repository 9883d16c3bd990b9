"""Keeps the steps of a run (`ports/steps.py`) as portable JSON with the engine, errors of our tree included."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from cortex.base.errors import CortexError, DatabaseUnavailable
from cortex.base.outages import Outages
from cortex.engine.codec import decode, decode_error, encode, encode_error
from cortex.ports import steps

Result = TypeVar("Result")


class Keeper(Protocol):
    """The engine, as far as it is needed here."""

    async def step(self, name: str, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do the action once and keep its JSON result; on replay, the kept one."""
        ...


class DurableSteps:
    """Implements `Steps` over an engine."""

    def __init__(self, engine: Keeper, outages: Outages) -> None:
        """`outages`: waits where the database is away, and does the action again."""
        self._engine = engine
        self._outages = outages

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Inside the block, and in tasks begun there, every marked method is a step."""
        token = steps.current.set(self)
        try:
            yield
        finally:
            steps.current.reset(token)

    async def keep(self, title: str, action: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the action once and keep what it returns or raises; on replay, what was kept.

        While the database is away it is tried again, as after a kill.
        """

        async def tried() -> Result:
            try:
                return await action()
            except DatabaseUnavailable:
                steps.is_first_life.set(False)  # the next try may find traces of this one
                raise

        async def kept() -> Any:
            token = steps.current.set(None)  # what a step calls is part of it
            try:
                return {"value": encode(await self._outages.wait_out(tried))}
            except CortexError as error:
                return encode_error(error)
            finally:
                steps.current.reset(token)
                keeping_begins()  # the engine waits for its database by itself, and tells nobody

        with self._outages.waiting_when_late() as keeping_begins:
            found = await self._engine.step(title, kept)
        if "error" in found:
            raise decode_error(found)
        # The codec gives back the very class that it was given.
        return cast(Result, decode(found["value"]))
