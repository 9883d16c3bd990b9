"""Nextcloud Talk by its documented API: the rooms of one account of Nextcloud, their posts, a post of its own.

The contract: docs/chat.md and docs/conversation.md of the public repository nextcloud/spreed (chat API v1, conversation
API v4, since Nextcloud 22). Every request has limits of time and size; what goes wrong is one sentence.
"""

import asyncio
import base64
import hashlib
import json
import re
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, Field, SecretStr, TypeAdapter, ValidationError, field_validator

from cortex.base import scan
from cortex.base.address import named
from cortex.base.errors import NotAllowed, ServiceDown, ToolFailed
from cortex.base.trust import Certificates
from cortex.base.web_address import bare_address, web_place
from cortex.integrations.cards import IntegrationHost
from cortex.ports.integrations import IntegrationKind
from cortex.ports.outgoing import Post, Room, Talk

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

TOTAL_S = 15.0  # one request
PAGE_BYTES = 8_000_000
PAGE_POSTS = 100
PAGES_MOST = 5  # a room may be full of posts that Talk itself makes
LOOKED_BACK = 200  # for a post of ours that was sent already; Talk gives no more at once
MAINTENANCE = "x-nextcloud-maintenance-mode"
DOWN = {
    401: "Nextcloud does not accept the user name and app password. An admin can enter new ones under Integrations.",
    426: "This Nextcloud version is not supported: it asks for a newer client.",
    429: "Nextcloud got too many requests from here. Try again in a few minutes.",
}
REFUSED = {
    403: "This room is read-only, or the account may not write in it.",
    404: "This room no longer exists, or the account was removed from it.",
    412: "The room's lobby is on: only its moderators can read and write now.",
    413: "The message is too long for this Nextcloud. Send it in parts.",
}
T = TypeVar("T")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_TOKEN = re.compile(r"[A-Za-z0-9]{4,32}")
_PLACEHOLDER = re.compile(r"\{([a-zA-Z0-9_-]{1,60})\}")


class TalkForm(BaseModel):
    """The fields that an admin fills in on the card."""

    address: str = Field(
        title="Address",
        description="As in a browser, such as https://cloud.example.org. It may be inside your network.",
        max_length=500,
    )
    user: str = Field(title="User name", description="Cortex's account in Nextcloud.", max_length=200)
    password: SecretStr = Field(
        title="App password",
        description="In Nextcloud, as that account: Personal settings, Security, Create new app password.",
    )
    ca: Certificates = ""

    @field_validator("address")
    @classmethod
    def _is_address(cls, text: str) -> str:
        return bare_address(text, "https://cloud.example.org").removesuffix("/index.php")

    @field_validator("user")
    @classmethod
    def _is_user(cls, name: str) -> str:
        if ":" in name or not name.isprintable():
            raise ValueError("write the name that this account logs in with")
        return name

    @field_validator("password")
    @classmethod
    def _is_password(cls, word: SecretStr) -> SecretStr:
        if not _VISIBLE.fullmatch(word.get_secret_value()):
            raise ValueError("an app password is letters, digits and dashes, without spaces")
        return word


class _Room(BaseModel):
    token: str = Field(pattern=r"^[A-Za-z0-9]{4,32}$")
    displayName: str = ""
    unreadMessages: int = 0
    lastActivity: int = 0


class _Message(BaseModel):
    id: int
    actorId: str = ""
    actorDisplayName: str = ""
    timestamp: int = 0
    message: str = ""
    messageType: str = "comment"
    referenceId: str = ""
    messageParameters: Any = None


_ROOMS: TypeAdapter[list[_Room]] = TypeAdapter(list[_Room])
_MESSAGES: TypeAdapter[list[_Message]] = TypeAdapter(list[_Message])


class TalkServer:
    """The Talk of a card: everybody who may use it reads and writes as the card's account."""

    def __init__(self, form: TalkForm, *, total_s: float = TOTAL_S) -> None:
        """total_s: how long one request may take."""
        self._form = form
        self._place = web_place(form.address)
        self._total_s = total_s
        login = f"{form.user}:{form.password.get_secret_value()}".encode()
        self._headers = {
            "Authorization": f"Basic {base64.b64encode(login).decode('ascii')}",
            "OCS-APIRequest": "true",
            "Accept": "application/json",
        }
        self._context: ssl.SSLContext | None = None

    async def test(self) -> str:
        """Reach it now: what answered, in a sentence. ToolFailed says what is wrong."""
        found = await self.rooms()
        if not found:
            return f"Nextcloud Talk answers. {self._form.user} is in no room yet: invite that account to one."
        count = f"{len(found)} room{'' if len(found) == 1 else 's'}"
        return f"Nextcloud Talk answers: {self._form.user} is in {count}."

    async def close(self) -> None:
        """Nothing is held: each request has a connection of its own."""

    async def rooms(self) -> Sequence[Room]:
        """The rooms, the latest first."""
        data = await self._data("GET", "/v4/room", {"noStatusUpdate": "1"}, is_of_room=False)
        found = _read(_ROOMS, data)
        found.sort(key=lambda room: -room.lastActivity)
        return [
            Room(token=room.token, name=" ".join(room.displayName.split())[:200], unread=max(room.unreadMessages, 0))
            for room in found
        ]

    async def post(self, id: str, token: str, text: str) -> None:
        """Post it, once: one that stands among the newest under this id is not posted again."""
        reference = hashlib.sha256(id.encode()).hexdigest()
        newest = await self._messages(token, LOOKED_BACK, None, is_read=False)
        if any(message.referenceId == reference for message in newest):
            return
        body = {"message": text, "referenceId": reference}
        await self._data("POST", f"/v1/chat/{_token(token)}", {}, body)

    async def post_at(self, link: str, id: str, text: str) -> None:
        """Post it in the room of this link; ToolFailed for a link that leads to another server."""
        await self.post(id, self.token_of(link), text)

    def token_of(self, link: str) -> str:
        """The room of a link as Talk copies it; ToolFailed for one of another server, or of no room."""
        root, _, token = link.strip().rstrip("/").rpartition("/call/")
        if root.removesuffix("/index.php").casefold() != self._form.address.casefold():
            raise ToolFailed(f"The room's link begins with {self._form.address}/call/.")
        return _token(token)

    async def history(self, token: str, most: int, before: int | None) -> Sequence[Post]:
        """The newest posts of people and bots, oldest first; `before`: only those ahead of this id."""
        found: list[_Message] = []
        for _ in range(PAGES_MOST):
            page = await self._messages(token, PAGE_POSTS, before, is_read=before is None)
            found += [message for message in page if message.messageType != "system"]
            if len(found) >= most or len(page) < PAGE_POSTS:
                break
            before = min(message.id for message in page)
        found.sort(key=lambda message: message.id)
        return [_post(message) for message in found[-most:]]

    async def _messages(self, token: str, most: int, before: int | None, *, is_read: bool) -> list[_Message]:
        query = {"lookIntoFuture": "0", "limit": str(most), "noStatusUpdate": "1", "setReadMarker": str(int(is_read))}
        if before is not None:
            query["lastKnownMessageId"] = str(before)
        return _read(_MESSAGES, await self._data("GET", f"/v1/chat/{_token(token)}", query))

    async def _data(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, str] | None = None,
        *,
        is_of_room: bool = True,
    ) -> Any:  # Any: the wire's `data`
        """Return what the envelope of a good answer holds; [] where there is nothing new."""
        asked = f"?{urlencode(query)}" if query else ""
        got = await self._fetch(method, f"{self._form.address}/ocs/v2.php/apps/spreed/api{path}{asked}", body)
        if got.status == 304:
            return []
        if not 200 <= got.status < 300:
            raise _refused(got, is_of_room=is_of_room)
        try:
            return json.loads(got.body)["ocs"]["data"]
        except (ValueError, KeyError, TypeError):
            raise _not_talk() from None

    async def _fetch(self, method: str, url: str, body: Mapping[str, str] | None) -> "FetchedPage":
        http = scan.load("cortex.base.http")
        if self._form.ca and self._context is None:
            self._context = await asyncio.to_thread(http.trusting, self._form.ca)
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        opened = http.open_client(named(self._place), follow_redirects=False, context=self._context)
        lost = "" if method == "GET" else " It may have been posted all the same."
        try:
            async with opened as client:
                got: FetchedPage = await http.fetch(
                    client,
                    url,
                    method=method,
                    headers=headers,
                    content=content,
                    max_bytes=PAGE_BYTES,
                    total_s=self._total_s,
                )
        except NotAllowed:
            raise
        except ToolFailed as error:  # its words show the whole address
            if isinstance(error.__cause__, TimeoutError) or "Timeout" in type(error.__cause__).__name__:
                raise ServiceDown(f"Nextcloud did not answer within {self._total_s:g} seconds.{lost}") from None
            raise ServiceDown(f"Nextcloud could not be reached.{lost}") from None
        if got.is_cut:
            raise ServiceDown("Nextcloud sent more than one answer may hold.")
        return got


def _refused(got: "FetchedPage", *, is_of_room: bool) -> ToolFailed:
    """Return what an answer that is no yes means. The server's own words are not repeated: nobody vouches for them."""
    status = got.status
    if status == 404 and not is_of_room:
        return ServiceDown("There is no Nextcloud Talk at this address. Check it under Integrations.")
    if status == 503 and any(name.lower() == MAINTENANCE and value == "1" for name, value in got.headers.items()):
        return ServiceDown("Nextcloud is being maintained. Try again later.")
    if status in DOWN:
        return ServiceDown(DOWN[status])
    if status in REFUSED:
        return ToolFailed(REFUSED[status])
    if 300 <= status < 400:
        return ServiceDown("Nextcloud sends on to another address; enter that one under Integrations.")
    if status >= 500:
        return ServiceDown(f"Nextcloud has a problem (status {status}). Try again later.")
    return ToolFailed(f"Nextcloud refused this (status {status}).")


def _read(kind: TypeAdapter[T], data: Any) -> T:  # Any: the wire's `data`
    try:
        return kind.validate_python(data)
    except ValidationError:
        raise _not_talk() from None


def _not_talk() -> ServiceDown:
    return ServiceDown("Something answers at this address, but not as Nextcloud Talk does.")


def _token(word: str) -> str:
    if not _TOKEN.fullmatch(word):
        raise ToolFailed("This names no room of Talk.")
    return word


def _post(message: _Message) -> Post:
    return Post(
        id=message.id,
        author=" ".join(message.actorDisplayName.split())[:100] or message.actorId[:100] or "somebody",
        text=_text(message),
        at=datetime.fromtimestamp(max(message.timestamp, 0), UTC),
    )


def _text(message: _Message) -> str:
    """The message with the names of what its placeholders stand for."""
    given = message.messageParameters if isinstance(message.messageParameters, dict) else {}

    def name(found: re.Match[str]) -> str:
        value = given.get(found[1])
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return found[0]
        is_person = str(value.get("type", "")) in ("user", "guest", "call", "user-group", "circle", "email")
        return f"@{value['name']}" if found[1].startswith("mention-") and is_person else value["name"]

    return _PLACEHOLDER.sub(name, message.message)


def integration(_: IntegrationHost) -> IntegrationKind:
    """Return what its card says."""
    return IntegrationKind(
        name="talk",
        title="Nextcloud Talk",
        about="Reads and sends messages in Nextcloud Talk rooms, and delivers notifications there.",
        order=40,
        opens=(Talk,),
        form=TalkForm,
        open=lambda form, _: TalkServer(form),
        place=("address", "user", "ca"),
        note="Give Cortex its own Nextcloud account and invite it to the rooms it should use. Everybody with "
        "access to this integration can read and write in all of them.",
    )
