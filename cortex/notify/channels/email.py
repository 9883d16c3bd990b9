"""E-mail through the one configured server: notices to a person's own address, and mails to others for email_send."""

from types import ModuleType

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.contact import mail_address
from cortex.base.errors import DeliveryError, ToolFailed, UserError
from cortex.base.server_settings import row_of
from cortex.base.settings import Settings
from cortex.notify import ChannelContext, ChannelField, ChannelKind, ready
from cortex.notify.context import SmtpServer, smtp_from
from cortex.notify.letter import Letter, of_notice, written
from cortex.ports.channels import Notice, Target


class Email:
    """Mails in plain text."""

    def __init__(self, context: ChannelContext, server: SmtpServer, smtp: ModuleType) -> None:
        self._context = context
        self._server = server
        self._smtp = smtp

    def checked(self, target: Target) -> Target:
        """One address, as mail servers take it."""
        try:
            return replace(target, address=mail_address(target.address))
        except ValueError as error:
            raise UserError(f"This {error}.", field="address") from None

    async def send(self, notice: Notice, target: Target) -> None:
        """Mail the notice."""
        address = ready(self, target).address
        await self._hand_over(of_notice(notice, address, self._context.site))

    async def post(self, letter: Letter) -> None:
        """Mail it to others; ToolFailed says whom the server refused, and who got it all the same."""
        try:
            addresses = [mail_address(address) for address in letter.to]
            answers = mail_address(letter.reply_to) if letter.reply_to else ""
        except ValueError as error:
            raise ToolFailed(f"One of the addresses {error}. Nothing was sent.") from None
        try:
            refused = await self._hand_over(replace(letter, to=addresses, reply_to=answers))
        except DeliveryError as error:
            end = "" if error.is_unknown else " Nothing was sent."
            raise ToolFailed(error.message + end, is_tainted=True) from None
        if refused:
            lost = "; ".join(f"{address} ({reason})" for address, reason in refused.items())
            reached = ", ".join(address for address in addresses if address not in refused)
            raise ToolFailed(f"Sent to {reached}, but the mail server refuses {lost}.", is_tainted=True)

    async def _hand_over(self, letter: Letter) -> dict[str, str]:
        mail = written(letter, self._server.sender, self._context.clock())
        return dict(await self._smtp.hand_over(self._server, mail, letter.to, self._context.total_s))


def _open(context: ChannelContext) -> Email:
    if context.smtp is None:
        raise UserError("E-mail is not set up: the server's settings name no mail server and sender.")
    return Email(context, context.smtp, scan.load("cortex.notify.smtp"))  # aiosmtplib


def _lacks(settings: Settings) -> str:
    is_set = smtp_from(settings) is not None
    missing = f"Mail server and sender are missing. Whoever runs Cortex enters them in {row_of('smtp_host')}."
    return "" if is_set else missing


CHANNEL = ChannelKind(
    label="E-mail",
    order=20,
    on_first_day="To your address",
    open=_open,
    tested="aiosmtpd, with and without TLS",
    lacks=_lacks,
    is_for_urgent=True,
    at_once=2,
    fields=(
        ChannelField(
            name="address",
            label="Your e-mail address",
            placeholder="name@example.org",
            input="email",
            is_shown=True,
        ),
    ),
)
