"""Makes a port durable: inside a run each call of a named method is a step whose result is kept and replayed.

Outside a run, and inside a step, the call goes straight through. `services/turns/turn_loop.py` composes the loop.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar, cast

from cortex.base.errors import CortexError
from cortex.engine.codec import decode, decode_error, encode, encode_error

Port = TypeVar("Port")


class Steps(Protocol):
    """What an engine offers here."""

    def in_run(self) -> bool:
        """Whether the caller is a run's body, outside any step."""
        ...

    async def step(self, name: str, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do the action once and keep its JSON result; on replay, the kept one."""
        ...


class _Durable:
    """Stands before a port. Attributes that are no durable method are the port's own."""

    def __init__(self, port: object, engine: Steps, methods: dict[str, str]) -> None:
        self._port = port
        self._engine = engine
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in self._methods:
            return found
        return _step(found, self._engine, self._methods[name])


def _step(method: Callable[..., Awaitable[Any]], engine: Steps, name: str) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        if not engine.in_run():
            return await method(*args, **kwargs)

        async def action() -> Any:
            try:
                return {"value": encode(await method(*args, **kwargs))}
            except CortexError as error:
                return encode_error(error)

        kept = await engine.step(name, action)
        if "error" in kept:
            raise decode_error(kept)
        return decode(kept["value"])

    return call


def durable(port: Port, engine: Steps, methods: Sequence[str], *, name: str | None = None) -> Port:
    """The port with `methods` as durable steps called `{name}.{method}`; `name` defaults to the port's class.

    Names are kept with a run: do not change them while runs of an older build may be resumed.

    Raises:
        TypeError: When a method is missing or not async.
    """
    title = name or type(port).__name__
    for method in methods:
        if not inspect.iscoroutinefunction(getattr(port, method, None)):
            raise TypeError(f"{title}.{method} is no async method")
    # The proxy answers to every attribute of the port; its static type is the port's.
    return cast(Port, _Durable(port, engine, {method: f"{title}.{method}" for method in methods}))
