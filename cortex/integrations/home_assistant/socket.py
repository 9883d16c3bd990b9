"""One websocket connection to Home Assistant: entered with the token, one reader, answers matched to commands by id.

Opened and ended by `client.py`. Garbage and unknown messages are passed over; what a command waits for has a limit.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage, InvalidStatus, InvalidURI

from cortex.base.clock import ticks_s
from cortex.base.dial import vetted
from cortex.base.errors import NotAllowed
from cortex.base.json_text import parsed
from cortex.integrations.home_assistant.server import PLACE, HomeRefusal, HomeServer, HomeTrouble, unanswered

OPEN_S = 8.0
COMMAND_S = 10.0
PING_S = 20.0
MAX_BYTES = 32 * 1024 * 1024  # the states of about 30,000 entities in one message
BREATH_S = 0.01  # work at a stretch, before others get their turn
log = logging.getLogger(__name__)

Handler = Callable[[Any], None]  # Any: an event, as Home Assistant wrote it


class HomeSocket:
    """An entered connection. `read` must run beside all else; `version`: of Home Assistant."""

    def __init__(self, connection: ClientConnection, version: str) -> None:
        self._connection = connection
        self.version = version
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._handlers: dict[int, Handler] = {}
        self._last_id = 0
        self._ended: HomeTrouble | None = None

    @classmethod
    async def enter(cls, server: HomeServer, context: ssl.SSLContext | None) -> "HomeSocket":
        """Connect and hand over the token. Raises HomeTrouble that says what is wrong, within OPEN_S."""
        try:
            async with asyncio.timeout(OPEN_S), AsyncExitStack() as stack:
                connection = await _connected(server, context)
                stack.callback(connection.transport.abort)
                version = await _authenticated(connection, server)
                stack.pop_all()
                return cls(connection, version)
        except TimeoutError as error:
            raise unanswered(OPEN_S) from error

    async def read(self) -> None:
        """Hand out whatever comes until the connection is over; always ends by raising HomeTrouble or by a cancel."""
        since = ticks_s()
        try:
            while True:
                self._take(await self._connection.recv())
                if ticks_s() - since > BREATH_S:
                    await asyncio.sleep(0)
                    since = ticks_s()
        except ConnectionClosed as error:
            raise self._end(_why_closed(error)) from error
        finally:
            self._end("The connection to Home Assistant was closed.")

    async def command(self, kind: str, /, *, timeout_s: float = COMMAND_S, **fields: Any) -> Any:
        """The result of one command. Raises HomeRefusal when it is refused, HomeTrouble when no answer comes."""
        id, answer = self._next()
        try:
            return await self._answer_to(id, answer, {"type": kind, **fields}, timeout_s)
        finally:
            self._waiting.pop(id, None)

    async def subscribe(self, handler: Handler, kind: str, /, **fields: Any) -> None:
        """Hand each event of a subscription to `handler`, beginning ahead of the answer; raises as `command` does."""
        id, answer = self._next()
        with ExitStack() as stack:
            stack.callback(self._waiting.pop, id, None)
            self._handlers[id] = handler
            with ExitStack() as unless_done:
                unless_done.callback(self._handlers.pop, id, None)
                await self._answer_to(id, answer, {"type": kind, **fields}, COMMAND_S)
                unless_done.pop_all()

    async def close(self) -> None:
        """End it, politely and not for long."""
        self._end("The connection to Home Assistant was closed.")
        await self._connection.close()

    def _next(self) -> tuple[int, "asyncio.Future[Any]"]:
        if self._ended is not None:
            raise self._ended.again()
        self._last_id += 1
        answer = asyncio.get_running_loop().create_future()
        self._waiting[self._last_id] = answer
        return self._last_id, answer

    async def _answer_to(self, id: int, answer: "asyncio.Future[Any]", fields: dict[str, Any], timeout_s: float) -> Any:
        try:
            async with asyncio.timeout(timeout_s):
                await self._connection.send(json.dumps({"id": id, **fields}))
                return await answer
        except TimeoutError as error:
            raise unanswered(timeout_s) from error
        except ConnectionClosed as error:
            raise self._end(_why_closed(error)) from error

    def _take(self, frame: str | bytes) -> None:
        """Look at one frame; whatever is no message of the protocol is passed over."""
        try:
            value = parsed(frame)
        except ValueError:
            log.debug("Home Assistant sent a frame that is no JSON")
            return
        for message in value if isinstance(value, list) else [value]:
            if isinstance(message, dict) and isinstance(message.get("id"), int):
                self._hand_out(message["id"], message)

    def _hand_out(self, id: int, message: dict[str, Any]) -> None:
        if message.get("type") == "event":
            if (handler := self._handlers.get(id)) is not None:
                handler(message.get("event"))
            return
        answer = self._waiting.get(id)
        if answer is None or answer.done():
            return
        if message.get("type") == "pong" or message.get("success") is True:
            answer.set_result(message.get("result"))
        elif message.get("success") is False:
            error = message.get("error")
            told = error if isinstance(error, dict) else {}
            answer.set_exception(HomeRefusal(str(told.get("code", "")), str(told.get("message", ""))))

    def _end(self, words: str) -> HomeTrouble:
        """Keep why it is over, the first time, and say so to everybody who waits."""
        if self._ended is None:
            self._ended = HomeTrouble("lost", words)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._ended.again())
                answer.exception()  # whoever waited may be gone
        return self._ended


async def _connected(server: HomeServer, context: ssl.SSLContext | None) -> ClientConnection:
    """The websocket, opened at an address that the egress rule has seen."""
    failure: HomeTrouble | None = None
    try:
        addresses = await vetted(server.host, server.port, server.policy)
    except NotAllowed as error:
        raise HomeTrouble("away", f"{error.message.rstrip('.')}. Check the address {PLACE}.") from error
    except (OSError, UnicodeError) as error:
        words = f"The network does not know {server.host!r}. Check Home Assistant's address {PLACE}."
        raise HomeTrouble("away", words) from error
    for address in addresses:
        try:
            return await connect(
                server.socket_url,
                host=address,
                port=server.port,
                ssl=context,
                server_hostname=server.host if context is not None else None,
                proxy=None,
                compression=None,
                max_size=MAX_BYTES,
                open_timeout=None,
                ping_interval=PING_S,
                ping_timeout=PING_S,
                close_timeout=1.0,
            )
        except (OSError, EOFError, ValueError, InvalidHandshake, InvalidURI) as error:
            failure = _trouble(error, server)
    raise failure or HomeTrouble("away", f"{server.host} has no address.")


def _trouble(error: Exception, server: HomeServer) -> HomeTrouble:
    """Return what a failed opening means, in words for the person who can mend it."""
    match error:
        case ssl.SSLCertVerificationError():
            words = f"The certificate of {server.place} is not trusted ({error.verify_message})."
            return HomeTrouble("certificate", f"{words} Give it a valid one, or enter its authority {PLACE}.")
        case ssl.SSLError():
            return HomeTrouble("certificate", f"{server.place} does not speak https. Try http in the address {PLACE}.")
        case InvalidStatus(response=answer) if answer.status_code == 403:
            words = f"Home Assistant at {server.place} has banned this machine's address after wrong tokens."
            return HomeTrouble("refused", f"{words} Remove it from ip_bans.yaml there and restart it.")
        case InvalidStatus(response=answer) if answer.status_code >= 500:
            words = f"{server.place} answers with status {answer.status_code}: Home Assistant behind it is not up."
            return HomeTrouble("away", f"{words} Try again in a minute.")
        case InvalidMessage() | EOFError() | ConnectionResetError():
            words = f"{server.place} hung up without an answer. Check http or https and the port {PLACE}"
            return HomeTrouble("not_it", f"{words}, and that Home Assistant has started.")
        case InvalidHandshake() | ValueError():
            words = f"{server.place} answers, but not as Home Assistant does. Check the address {PLACE}"
            return HomeTrouble("not_it", f"{words}, and that Home Assistant has started.")
    words = f"Nothing answers at {server.place}. Is Home Assistant running there? Else correct its address {PLACE}."
    return HomeTrouble("away", words)


async def _authenticated(connection: ClientConnection, server: HomeServer) -> str:
    """Its version, after the token was accepted."""
    stranger = f"{server.place} answers, but not as Home Assistant does. Check the address {PLACE}."
    try:
        asked = _message(await connection.recv())
        if asked.get("type") != "auth_required":
            raise HomeTrouble("not_it", stranger)
        await connection.send(json.dumps({"type": "auth", "access_token": server.token}))
        said = _message(await connection.recv())
    except ConnectionClosed as error:
        raise HomeTrouble("lost", "Home Assistant hung up while Cortex logged in. Try again in a minute.") from error
    if said.get("type") == "auth_ok":
        return str(said.get("ha_version") or "")[:20]
    if said.get("type") == "auth_invalid":
        words = "Home Assistant refused the token. Make a new long-lived access token there (your profile, Security)"
        raise HomeTrouble("refused", f"{words} and enter it {PLACE}.")
    raise HomeTrouble("not_it", stranger)


def _message(frame: str | bytes) -> dict[str, Any]:
    try:
        value = parsed(frame)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _why_closed(error: ConnectionClosed) -> str:
    if error.sent is not None and error.sent.code == 1009:
        return f"Home Assistant sent more than {MAX_BYTES >> 20} MB at once, which is not read."
    return "The connection to Home Assistant was lost. Cortex connects again by itself; try again in a minute."
