"""Telegram by its documented Bot API: one bot, asked by long polling, so that no port is open.

The contract: https://core.telegram.org/bots/api (10.x, read 2026-11). Requests have limits of time and size; the
address of a request holds the token, so no error repeats one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from pydantic import BaseModel, Field, SecretStr, field_validator

from cortex.base import scan
from cortex.base.address import named
from cortex.base.errors import NotAllowed, ServiceDown, ToolFailed
from cortex.base.web_address import bare_address, web_place
from cortex.integrations.cards import IntegrationHost
from cortex.integrations.telegram_updates import UpdateReader
from cortex.ports.integrations import IntegrationKind
from cortex.ports.messengers import Button, ChatClosed, Incoming, Messenger, NotSent, Received, RemoteFile

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

API = "https://api.telegram.org"
TOTAL_S = 20.0  # one request, beyond the time that it is to wait
ANSWER_BYTES = 8_000_000
AT_ONCE = 50  # updates
TEXT_UNITS = 4_096  # UTF-16, after the markup is read
JSON = "application/json"
FILE_BYTES = 20_000_000  # the Bot API gives no larger ones
WANTED = ("message", "edited_message", "callback_query")
WRITER = "cortex.integrations.rich_text"  # markdown-it, with the first answer
_TOKEN = re.compile(r"[0-9]{5,16}:[A-Za-z0-9_-]{30,60}")
_GROUP = re.compile(r"-[0-9]{1,19}")
REFUSED = "Telegram does not accept the bot's token. An admin can enter another one under Integrations."
OTHER = (
    "Another program asks Telegram with the same token, or a webhook is set. End it: a bot can be asked by one "
    "program only."
)


class TelegramForm(BaseModel):
    """The fields that an admin fills in on the card."""

    token: SecretStr = Field(
        title="Bot token",
        description="In Telegram, write /newbot to @BotFather. It answers with the token of your bot.",
    )
    groups: str = Field(
        "",
        title="Groups",
        description="Ids of the groups in which Cortex answers, without tools or memory, when it is addressed. Address "
        "it in a group, and it says the group's id. Empty: none.",
        max_length=1000,
    )
    address: str = Field(
        API, title="Address", description="Another one only for a Bot API server of your own.", max_length=500
    )

    @field_validator("token")
    @classmethod
    def _is_token(cls, word: SecretStr) -> SecretStr:
        if not _TOKEN.fullmatch(word.get_secret_value().strip()):
            raise ValueError("a bot's token is a number, a colon and about 35 letters, as @BotFather shows it")
        return SecretStr(word.get_secret_value().strip())

    @field_validator("groups")
    @classmethod
    def _are_groups(cls, text: str) -> str:
        ids = text.replace(",", " ").split()
        if not all(map(_GROUP.fullmatch, ids)):
            raise ValueError("the id of a group is a number with a minus, such as -1001234567890")
        return " ".join(dict.fromkeys(ids))

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return bare_address(text or API, API)


class TelegramBot:
    """The bot of a card."""

    def __init__(self, form: TelegramForm, *, total_s: float = TOTAL_S) -> None:
        """total_s: how long one request may take."""
        self._form = form
        self._place = web_place(form.address)
        self._total_s = total_s
        self._me: Mapping[str, Any] = {}

    async def test(self) -> str:
        """Reach it now: what answered, in a sentence. ToolFailed says what is wrong."""
        me = await self._call("getMe")
        hook = await self._call("getWebhookInfo")
        if hook.get("url"):
            raise ToolFailed(OTHER)
        return (
            f"Telegram answers: the bot is @{me.get('username', '')}. People link themselves under Account, Messengers."
        )

    async def close(self) -> None:
        """Nothing is held: each request has a connection of its own."""

    async def account(self) -> str:
        """The bot's id, with the server that numbers what it gets where that is not Telegram's own."""
        if not self._me:
            self._me = await self._call("getMe")
        return str(self._me["id"]) if self._form.address == API else f"{self._me['id']}@{self._form.address}"

    @property
    def groups(self) -> frozenset[str]:
        """Return the groups in which it answers."""
        return frozenset(self._form.groups.split())

    @property
    def handle(self) -> str:
        """Return the bot's name, as people find it; "" before it was asked for."""
        name = self._me.get("username")
        return f"@{name}" if name else ""

    is_repeatable, sign = False, "/"

    async def receive(self, after: int, wait_s: float, cursor: str = "") -> Received:
        """The updates behind this one; asking for them confirms all up to it."""
        await self.account()
        asked = {"timeout": int(wait_s), "limit": AT_ONCE, "allowed_updates": list(WANTED)}
        if after:
            asked["offset"] = after + 1
        rows = await self._call("getUpdates", asked, wait_s=wait_s)
        found = [row for row in rows if isinstance(row, dict) and isinstance(row.get("update_id"), int)]
        known = UpdateReader(id=str(self._me["id"]), handle=self.handle)
        items = [item for row in found if (item := known.read(row)) is not None]
        return Received(items=tuple(items), upto=max((row["update_id"] for row in found), default=after))

    def parts(self, markdown: str) -> Sequence[str]:
        """The text in Telegram's HTML, each part within its limit."""
        return cast("Sequence[str]", scan.load(WRITER).html_parts(markdown, TEXT_UNITS))

    async def send(
        self, chat: str, part: str, *, buttons: Sequence[Button] = (), is_silent: bool = False, once: str = ""
    ) -> str:
        """Send one message; Telegram has no key by which it would know it again."""
        body: dict[str, Any] = {
            **_place(chat),
            "text": part,
            "parse_mode": "HTML",
            "disable_notification": is_silent,
            "link_preview_options": {"is_disabled": True},  # a preview would ask a place that outside text may name
        }
        if buttons:
            row = [{"text": one.words, "callback_data": one.choice} for one in buttons]
            body["reply_markup"] = {"inline_keyboard": [row]}
        return str((await self._call("sendMessage", body))["message_id"])

    async def send_picture(
        self, chat: str, name: str, content: bytes, *, is_silent: bool = False, once: str = ""
    ) -> str:
        """Send a photo; as a file where it is none that Telegram draws."""
        given = {name: str(value) for name, value in _place(chat).items()}
        given["disable_notification"] = str(is_silent).lower()
        try:
            return await self._send_file("sendPhoto", given, "photo", name, content)
        except ServiceDown:
            raise
        except ToolFailed:  # too long or too large for a photo, or a GIF
            return await self._send_file("sendDocument", given, "document", name, content)

    async def _send_file(self, method: str, given: Mapping[str, str], field: str, name: str, content: bytes) -> str:
        kind, body = scan.load("cortex.base.http").form_data(given, field, name, content)
        return str((await self._call(method, body, kind=kind))["message_id"])

    async def enter(self, chat: str) -> str:
        """Whoever writes has opened the chat."""
        return chat

    async def seen(self, item: Incoming) -> None:
        """Bots cannot show it."""

    async def typing(self, chat: str) -> None:
        """Show that Cortex writes, for five seconds."""
        await self._call("sendChatAction", {**_place(chat), "action": "typing"})

    async def settle(self, item: Incoming, words: str, *, is_over: bool) -> None:
        """Answer the press; it is shown beside the button. Of one that is too old the words come as a message."""
        is_shown = not item.press
        with _refusals_pass():
            if item.press:
                await self._call("answerCallbackQuery", {"callback_query_id": item.press, "text": words[:200]})
                is_shown = True
        with _refusals_pass():
            if is_over and item.message:
                bare = {"chat_id": int(item.chat), "message_id": int(item.message), "reply_markup": {}}
                await self._call("editMessageReplyMarkup", bare)
        with _refusals_pass():
            if not is_shown:
                await self.send(item.chat, escape(words, quote=False))

    async def fetch(self, file: RemoteFile, most_bytes: int) -> bytes:
        """The file, by a link that holds for an hour."""
        most = min(most_bytes, FILE_BYTES)
        if file.size_bytes > most:
            raise ToolFailed(f"{file.name} is larger than {most // 1_000_000} MB.")
        found = await self._call("getFile", {"file_id": file.id})
        path = quote(str(found.get("file_path", "")), safe="/")
        got = await self._fetch(f"/file/bot{self._token}/{path}", None, most, self._total_s * 3)
        if got.status != 200:
            raise ToolFailed(f"Telegram does not give {file.name} any more. Send it once more.")
        if got.is_cut:
            raise ToolFailed(f"{file.name} is larger than {most // 1_000_000} MB.")
        return got.body

    @property
    def _token(self) -> str:
        return self._form.token.get_secret_value()

    async def _call(
        self, method: str, body: Mapping[str, Any] | bytes = b"{}", *, kind: str = JSON, wait_s: float = 0.0
    ) -> Any:
        """Return the `result` of a good answer. Any: the wire's. `kind`: of a body in bytes."""
        total_s = self._total_s + wait_s
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        got = await self._fetch(f"/bot{self._token}/{method}", content, ANSWER_BYTES, total_s, kind=kind)
        try:
            answer = json.loads(got.body)
            is_good = answer["ok"] is True
        except (ValueError, KeyError, TypeError):
            raise ServiceDown(f"Something answers in Telegram's place (status {got.status}).") from None
        if is_good:
            return answer["result"]
        raise _refused(answer)

    async def _fetch(
        self, path: str, content: bytes | None, most_bytes: int, total_s: float, *, kind: str = JSON
    ) -> "FetchedPage":
        http = scan.load("cortex.base.http")
        opened = http.open_client(named(self._place), follow_redirects=False, timeout_s=total_s)
        try:
            async with opened as client:
                got: FetchedPage = await http.fetch(
                    client,
                    f"{self._form.address}{path}",
                    method="GET" if content is None else "POST",
                    headers={"Content-Type": kind},
                    content=content,
                    max_bytes=most_bytes,
                    total_s=total_s,
                )
        except NotAllowed:
            raise
        except ToolFailed as error:  # its words show the whole address
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                raise NotSent("Telegram cannot be reached.") from None
            raise ServiceDown("Telegram did not answer in time, or broke off.") from None
        return got


def _refused(answer: Mapping[str, Any]) -> ToolFailed:
    """Return what an answer that is no yes means. Its own words are not repeated, only looked into."""
    code, said = answer.get("error_code"), str(answer.get("description", ""))
    given = answer.get("parameters")
    parameters = given if isinstance(given, dict) else {}
    if code in (401, 404):
        return NotSent(REFUSED, wait_s=60.0)
    if code == 409:
        return NotSent(OTHER, wait_s=30.0)
    if code == 429:
        return NotSent("Telegram got too many requests.", wait_s=float(parameters.get("retry_after") or 5))
    if "migrate_to_chat_id" in parameters:
        return ChatClosed(f"The group has another id now: {parameters['migrate_to_chat_id']}. Put it on the card.")
    if code == 403 or "chat not found" in said:
        return ChatClosed("The person blocked the bot in Telegram, or left the chat.")
    if "file is too big" in said:
        return ToolFailed(f"The file is larger than {FILE_BYTES // 1_000_000} MB.")
    if isinstance(code, int) and code >= 500:
        return NotSent(f"Telegram has a problem (status {code}).", wait_s=5.0)
    return ToolFailed(f"Telegram refused this (status {code}).")


def _place(chat: str) -> dict[str, int]:
    """Where a message goes: a chat, or one topic of it."""
    id, _, thread = chat.partition("/")
    return {"chat_id": int(id), **({"message_thread_id": int(thread)} if thread else {})}


@contextmanager
def _refusals_pass() -> Iterator[None]:
    """Go on behind what Telegram refused: a press is too old, or its message is gone. Not where it is away."""
    try:
        yield
    except ServiceDown:
        raise
    except ToolFailed:
        return


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="telegram",
        title="Telegram",
        about="People write to Cortex by a Telegram bot, and are notified there.",
        order=45,
        opens=(Messenger,),
        form=TelegramForm,
        open=lambda form, _: TelegramBot(form),
        place=("address",),
        has_roles=False,
        note="Each person links their Telegram under Account, Messengers. Telegram can read what is written to bots: "
        "these chats are not end-to-end encrypted.",
    )
