"""Notification channels: a file each in `channels/`, which says all of itself. Senders only: no table, no retry.

`ChannelRegister` is the door for services. Nothing heavy is imported with this package, nor with a channel's file: what
sends is loaded when the first notice goes that way.
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Literal

from msgspec import Struct

from cortex.base import scan
from cortex.base.errors import ConfigError, DeliveryError, UserError
from cortex.base.settings import Settings
from cortex.notify.context import ChannelContext as ChannelContext
from cortex.ports.channels import Channel, ChannelName, Notice, Target

FOLDER = f"{__name__}.channels"


class ChannelField(Struct, frozen=True, kw_only=True):
    """A field that a person fills in for a channel. `name`: the part of `Target` that it becomes.

    `address` and `key` are shown as far as `is_shown` says: whole, or of a web address the server alone. A `secret` is
    never shown, and one that is left empty stays with the same server. `made`: makes one where none was ever typed, to
    be shown this once.
    """

    name: Literal["address", "key", "secret"]
    label: str
    placeholder: str = ""
    hint: str = ""
    input: Literal["url", "email", "text"] = "url"
    is_required: bool = True
    is_shown: bool = False
    made: Callable[[], str] | None = None


def _lacks_nothing(_: Settings) -> str:
    return ""


class ChannelKind(Struct, frozen=True, kw_only=True):
    """All that a channel says of itself. Its key is the name of its file; rows in homes hold it, so it stays.

    `label`: what people read; `offer`: the same where a job may choose it, "" for the label. `order`: its place on
    pages, and among those that step in where another one failed. `open`: makes what sends; it may take its time, and
    raises UserError for what is not set up.

    `fields`: what a person fills in; () for the one that reaches the devices they added: it is signed with the server's
    keys and puts the number on the app's icon; and for one that `is_linked`: it goes to the account that its person
    linked under Account, Messengers, and `lacks_for` says who did not. `nowhere`: what a person hears who filled in
    nothing. `lacks`, then `lacks_for` of one account: what must be set up before anything can go this way, "" for
    nothing.

    `tested`: what its tests run against, for `docs/channels.md`.

    `is_for_urgent`: unless a person chooses, it has digests and what is urgent alone, and all where there is no other.
    `sends_read`: also what was read before it was sent. `at_once`: so many deliveries at the same time.
    `on_first_day`: its line on the first day's page, "" where it is not offered there.
    """

    label: str
    order: int
    open: Callable[[ChannelContext], Channel]
    tested: str
    fields: tuple[ChannelField, ...] = ()
    is_linked: bool = False
    offer: str = ""
    nowhere: str = "Not set up: add an address under Notifications."
    lacks: Callable[[Settings], str] = _lacks_nothing
    lacks_for: Callable[[ChannelContext, str], Awaitable[str]] | None = None
    is_for_urgent: bool = False
    sends_read: bool = False
    at_once: int = 4
    on_first_day: str = ""

    @property
    def reaches_devices(self) -> bool:
        """Tell whether it goes to the devices that a person added, and has no address."""
        return not self.fields and not self.is_linked


class ChannelRegister:
    """The channels by their names, in the order of pages: those that ship, and those of other packages.

    `held`: all of them now. Who needs them to belong together over more than one look keeps that value.
    """

    def __init__(self) -> None:
        """Read the files of ours."""
        files = {name: scan.load(f"{FOLDER}.{name}") for name in scan.modules(FOLDER)}
        self._shipped = {name: kind_of(name, module) for name, module in files.items()}
        self.held = _sorted(self._shipped)

    def put(self, modules: Mapping[ChannelName, ModuleType]) -> None:
        """Hold the channels of these modules beside what ships, in place of those that were put before.

        ConfigError, and nothing changed, where one is none, takes a name of ours, or has no address.
        """
        kinds = {name: kind_of(name, module) for name, module in modules.items()}
        for name, kind in kinds.items():
            if name in self._shipped:
                raise ConfigError(f"The notification channel {name!r} comes with Cortex; choose another name.")
            if not (name.isidentifier() and name.isascii()):
                raise ConfigError(f"The notification channel {name!r}: use letters, digits and _ for its name.")
            if "address" not in [one.name for one in kind.fields]:
                raise ConfigError(f"The notification channel {name!r} needs a field named address.")
            if any(kind.label.casefold() == one.label.casefold() for one in self._shipped.values()):
                raise ConfigError(f"The notification channel {name!r}: {kind.label!r} is the label of another one.")
        self.held = _sorted({**self._shipped, **kinds})

    def ships(self, name: ChannelName) -> bool:
        """Tell whether a channel comes with Cortex."""
        return name in self._shipped

    def kind(self, name: ChannelName) -> ChannelKind:
        """The channel of this name; UserError when there is none."""
        try:
            return self.held[name]
        except KeyError:
            raise UserError(f"Unknown channel {name!r}. Available: {', '.join(self.held)}.") from None


def kind_of(name: ChannelName, module: ModuleType) -> ChannelKind:
    """Return what a channel's module says of itself, in its `CHANNEL`; ConfigError when it says nothing."""
    kind = getattr(module, "CHANNEL", None)
    if not isinstance(kind, ChannelKind):
        raise ConfigError(f"The notification channel {name!r} has no CHANNEL = ChannelKind(…) in {module.__name__}.")
    return kind


def _sorted(kinds: Mapping[ChannelName, ChannelKind]) -> Mapping[ChannelName, ChannelKind]:
    return MappingProxyType(dict(sorted(kinds.items(), key=lambda item: (item[1].order, item[0]))))


def ready(channel: Channel, target: Target) -> Target:
    """The target as the channel checked it again before a send; DeliveryError when it would not be kept today."""
    try:
        return channel.checked(target)
    except UserError as error:
        raise DeliveryError(error.message, fate="refused") from None


def trial(id: str, kind: ChannelKind) -> Notice:
    """Return what "send a test" sends: nothing private, so that the whole way is seen."""
    text = f"Notifications by {kind.label} arrive here."
    return Notice(id=id, kind="test", title="Cortex: test", text=text, tag="test", ttl_s=300, is_private=False)
