"""The notification channel of a plug-in, in which nothing that pages, notices and the outbox ask of it raises or hangs.

Its own words are checked once; what it is asked later is limited in time, and its faults become a sentence for the
person whose notice it was.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from types import ModuleType
from typing import TypeVar

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import ConfigError, CortexError, DatabaseUnavailable, DeliveryError, UserError
from cortex.base.hidden import holds_hiding
from cortex.base.settings import Settings
from cortex.notify import ChannelContext, ChannelField, ChannelKind, kind_of
from cortex.ports.channels import Channel, Notice, Target
from cortex.toolkit.plugins import PluginBrokeOff, answer, attempted, log_fault, whole_text
from cortex.toolkit.words import cut, one_line

T = TypeVar("T")

BROKEN = "Its plug-in failed; the log of the server says how."
OPEN_S = 10.0
ASK_S = 5.0
SEND_S = 30.0  # less than the lease of the outbox
LABEL_CHARACTERS, WORDS_CHARACTERS = 40, 300
FIELDS = frozenset({"address", "key", "secret"})
INPUTS = frozenset({"url", "email", "text"})

log = logging.getLogger(__name__)


def kept_apart(name: str, module: ModuleType) -> ModuleType:
    """A module with the channel as all others are to see it; ConfigError or ValueError if it is none."""
    kind = kind_of(name, module)
    if not isinstance(kind.order, int) or not isinstance(kind.at_once, int):
        raise ValueError("order and at_once are numbers")
    fields = tuple(_field(one) for one in kind.fields)
    if len({one.name for one in fields}) < len(fields):
        raise ValueError("two of its fields have the same name")
    made = ModuleType(module.__name__)
    made.__dict__["CHANNEL"] = ChannelKind(
        label=_words("label", kind.label, LABEL_CHARACTERS),
        offer=_words("offer", kind.offer, LABEL_CHARACTERS) if kind.offer else "",
        nowhere=_words("nowhere", kind.nowhere, WORDS_CHARACTERS),
        order=kind.order,
        open=partial(_opened, name, kind),
        tested="",
        fields=fields,
        lacks=partial(_lacks, name, kind),
        lacks_for=partial(_lacks_for, name, kind) if kind.lacks_for else None,
        is_for_urgent=bool(kind.is_for_urgent),
        sends_read=bool(kind.sends_read),
        at_once=min(max(2, kind.at_once), 8),
    )
    return made


def _words(what: str, text: object, most: int) -> str:
    if not isinstance(text, str) or not text.strip() or len(text) > most or holds_hiding(text):
        raise ValueError(f"{what}: it must be a text of 1 to {most} characters that can be seen")
    return whole_text(text)


def _field(one: ChannelField) -> ChannelField:
    if not isinstance(one, ChannelField) or one.name not in FIELDS or one.input not in INPUTS:
        raise ValueError(f"its fields are ChannelField(…) named {', '.join(sorted(FIELDS))}")
    return replace(
        one,
        label=_words("label", one.label, LABEL_CHARACTERS),
        placeholder=_words("placeholder", one.placeholder, WORDS_CHARACTERS) if one.placeholder else "",
        hint=_words("hint", one.hint, WORDS_CHARACTERS) if one.hint else "",
        made=partial(_made, one.made) if one.made else None,
    )


def _lacks(name: str, kind: ChannelKind, settings: Settings) -> str:
    found, _ = attempted(lambda: kind.lacks(settings), f"lacks of the channel {name}")
    return _said(found)


async def _lacks_for(name: str, kind: ChannelKind, context: ChannelContext, user_id: str) -> str:
    ask = kind.lacks_for
    try:
        async with asyncio.timeout(ASK_S):
            found, error = await answer(lambda: ask(context, user_id) if ask else asyncio.sleep(0, ""))
    except TimeoutError as late:
        found, error = None, late
    if error is not None:
        log_fault(f"lacks_for of the channel {name}", error)
    return _said(found)


def _said(found: object) -> str:
    return whole_text(cut(one_line(found), WORDS_CHARACTERS)) if isinstance(found, str) else BROKEN


def _opened(name: str, kind: ChannelKind, context: ChannelContext) -> Channel:
    channel = _in_time(lambda: kind.open(context), f"open of the channel {name}")
    return _KeptApart(name, channel)


def _made(make: Callable[[], str]) -> str:
    found = _in_time(make, "made of a field")
    if not isinstance(found, str) or not found:
        raise UserError(BROKEN)
    return whole_text(found)


def _in_time(work: Callable[[], T], what: str) -> T:
    """Return what it gives, in a thread of its own: one that never comes back holds nothing but that thread."""
    done: Future[tuple[T | None, BaseException | None]] = Future()
    Thread(target=lambda: done.set_result(scan.caught(work)), name=f"plug-in, {what}", daemon=True).start()
    try:
        found, error = done.result(OPEN_S)
    except TimeoutError as late:
        log.error("plug-in: %s did not end within %.0f seconds", what, OPEN_S)
        raise ConfigError(BROKEN) from late
    if error is not None:
        raise _told(error, what)
    return found  # type: ignore[return-value]  # it is one where nothing was raised


def _told(error: BaseException, what: str) -> CortexError:
    """The error as a person is told of it: in the plug-in's words where they are for people, else the log has it."""
    if isinstance(error, CortexError) and not isinstance(error, PluginBrokeOff):
        error.message = whole_text(str(error.message))
        return error
    log_fault(what, error)
    return ConfigError(BROKEN)


class _KeptApart:
    """Implements `Channel` around that of a plug-in."""

    def __init__(self, name: str, channel: Channel) -> None:
        self._name = name
        self._channel = channel

    def checked(self, target: Target) -> Target:
        """The target as it is kept; UserError also where the plug-in fails."""
        parts, error = scan.caught(lambda: _parts(self._channel.checked(target)))
        if isinstance(error, UserError):
            raise _told(error, "")
        if parts is None:
            log_fault(f"checked of the channel {self._name}", error)
            raise UserError(BROKEN)
        if not all(isinstance(part, str) for part in parts):
            raise UserError(BROKEN)
        address, key, secret = map(whole_text, parts)
        return Target(address=address, key=key, secret=secret)

    async def send(self, notice: Notice, target: Target) -> None:
        """Hand it over, once; DeliveryError whatever it was that went wrong."""
        try:
            async with asyncio.timeout(SEND_S):
                _, error = await answer(self._channel.send, notice, target)
        except TimeoutError:
            text = f"It took longer than {SEND_S:.0f} seconds."
            raise DeliveryError(text, fate="later", is_unknown=True) from None
        if error is None:
            return
        told = _told(error, f"send of the channel {self._name}")
        if isinstance(told, DatabaseUnavailable | DeliveryError):
            raise told
        raise DeliveryError(told.message, fate="later", is_unknown=True)


def _parts(target: Target) -> tuple[str, str, str]:
    return target.address, target.key, target.secret
