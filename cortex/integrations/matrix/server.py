"""Requests to a homeserver, as the card's account: https://spec.matrix.org/v1.16/client-server-api/ (read 2026-11).

Each has limits of time and size. A login by password is kept sealed and used until the server ends it; the device stays
the same, for the server knows what is sent twice by device and word.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from cortex.base import scan
from cortex.base.address import named
from cortex.base.errors import NotAllowed, ServiceDown, ToolFailed
from cortex.base.web_address import web_place
from cortex.integrations.cards.matrix import MatrixForm
from cortex.ports.integrations import LoginStore
from cortex.ports.messengers import NotSent

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

TOTAL_S = 20.0  # one request, beyond the time that it is to wait
ANSWER_BYTES = 16_000_000
AT_ONCE = 200_000  # bytes of an answer that are read while others wait
CLIENT = "/_matrix/client/v3"
ENDED = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN")
REFUSED = "The Matrix server does not accept Cortex's login. An admin can enter it anew under Integrations."


T = TypeVar("T")


class MatrixRefused(ToolFailed):
    """The server said no. `code`: its word for why."""

    def __init__(self, status: int, code: str) -> None:
        """Keep both."""
        super().__init__(f"The Matrix server refused this ({code or status}).")
        self.status, self.code = status, code


class _Login(Struct, kw_only=True):
    address: str = ""
    user: str = ""
    device: str = ""
    token: str = ""


class _LoggedIn(Struct, frozen=True, kw_only=True):
    user_id: str
    access_token: str
    device_id: str


class MatrixUser(Struct, frozen=True, kw_only=True):
    """An account of the server."""

    user_id: str


class File(Struct, frozen=True, kw_only=True):
    """A file that lies there."""

    content_uri: str


class MatrixServer:
    """The homeserver of a card."""

    def __init__(self, form: MatrixForm, store: LoginStore, total_s: float) -> None:
        """total_s: how long one request may take."""
        self._form, self._store, self._total_s = form, store, total_s
        self._place = web_place(form.address)
        self._token = form.token.get_secret_value().strip()
        self._logging_in = asyncio.Lock()

    async def try_login(self) -> str:
        """As whom the form's key lets in; a login that is made for it ends again."""
        if self._form.token.get_secret_value().strip():
            return (await self.whoami()).user_id
        made = await self._log_in("")
        await self._asked("POST", f"{CLIENT}/logout", {}, shape=dict, token=made.access_token)
        return made.user_id

    async def whoami(self) -> MatrixUser:
        """As whom the login that stands lets in."""
        return await self.call("GET", f"{CLIENT}/account/whoami", shape=MatrixUser)

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        shape: type[T],
        query: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> T:
        """Return what a good answer holds, in this shape. MatrixRefused, NotSent, ServiceDown."""
        where = f"{path}?{urlencode(query)}" if query else path
        token = self._token or await self._kept()
        try:
            return await self._asked(method, where, body, shape=shape, token=token, wait_s=wait_s)
        except MatrixRefused as refused:
            if refused.code not in ENDED:
                raise
        token = await self._renewed(token)
        try:
            return await self._asked(method, where, body, shape=shape, token=token, wait_s=wait_s)
        except MatrixRefused as refused:
            if refused.code in ENDED:
                raise NotSent(REFUSED, wait_s=60.0) from None
            raise

    async def keep(self, name: str, content: bytes) -> str:
        """Lay a file there; its address."""
        query = {"filename": name}
        return (await self.call("POST", "/_matrix/media/v3/upload", content, shape=File, query=query)).content_uri

    async def file(self, server: str, id: str, most_bytes: int) -> bytes | None:
        """A file that lies there; None where it is larger. MatrixRefused for one that is gone."""
        path = f"/_matrix/client/v1/media/download/{quote(server, safe='')}/{quote(id, safe='')}"
        await self.whoami()  # so that its login stands
        got = await self._fetch("GET", path, None, self._token, most_bytes, self._total_s * 3)
        if got.status != 200:
            raise MatrixRefused(got.status, "")
        return None if got.is_cut else got.body

    async def _kept(self) -> str:
        """The token of the login that stands; of a new one where none does."""
        login = await self._loaded()
        if not login.token:
            return await self._renewed("")
        self._token = login.token
        return login.token

    async def _renewed(self, ended: str) -> str:
        """The token of another login than this one: that of another process, or of a new one."""
        if self._form.token.get_secret_value().strip() or not self._form.password.get_secret_value():
            raise NotSent(REFUSED, wait_s=60.0)
        async with self._logging_in:
            login = await self._loaded()
            if not login.token or login.token == ended:
                made = await self._log_in(login.device)
                login.token, login.device = made.access_token, made.device_id
                await self._store.save(msgspec.json.encode(login).decode())
            self._token = login.token
            return login.token

    async def _loaded(self) -> _Login:
        """Return what is kept, if it is of this server and account."""
        text = await self._store.load()
        kept = msgspec.json.decode(text, type=_Login) if text else _Login()
        mine = _Login(address=self._form.address, user=self._form.user)
        return kept if (kept.address, kept.user) == (mine.address, mine.user) else mine

    async def _log_in(self, device: str) -> _LoggedIn:
        body: dict[str, Any] = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self._form.user},
            "password": self._form.password.get_secret_value(),
            "initial_device_display_name": "Cortex",
        }
        if device:
            body["device_id"] = device
        try:
            return await self._asked("POST", f"{CLIENT}/login", body, shape=_LoggedIn)
        except MatrixRefused as refused:
            if refused.status in (400, 401, 403):
                raise NotSent(REFUSED, wait_s=60.0) from None
            raise

    async def _asked(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None,
        *,
        shape: type[T],
        token: str = "",
        wait_s: float = 0.0,
    ) -> T:
        content = json.dumps(body, ensure_ascii=False).encode() if isinstance(body, Mapping) else body
        got = await self._fetch(method, path, content, token, ANSWER_BYTES, self._total_s + wait_s)
        is_long = len(got.body) > AT_ONCE
        try:
            answer = await asyncio.to_thread(msgspec.json.decode, got.body) if is_long else _read(got.body)
            if got.status == 200:
                return msgspec.convert(answer, shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ServiceDown(f"Something answers in the Matrix server's place (status {got.status}).") from None
        raise _refusal(got.status, answer if isinstance(answer, dict) else {})

    async def _fetch(
        self, method: str, path: str, content: bytes | None, token: str, most_bytes: int, total_s: float
    ) -> "FetchedPage":
        http = scan.load("cortex.base.http")
        is_file = path.startswith("/_matrix/media/")
        headers = {"Content-Type": "application/octet-stream" if is_file else "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        opened = http.open_client(named(self._place), follow_redirects=False, timeout_s=total_s)
        try:
            async with opened as client:
                got: FetchedPage = await http.fetch(
                    client,
                    f"{self._form.address}{path}",
                    method=method,
                    headers=headers,
                    content=content,
                    max_bytes=most_bytes,
                    total_s=total_s,
                )
        except NotAllowed:
            raise
        except ToolFailed as error:
            if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout"):
                raise NotSent("The Matrix server cannot be reached.") from None
            raise ServiceDown("The Matrix server did not answer in time, or broke off.") from None
        return got


def _read(body: bytes) -> Any:
    return msgspec.json.decode(body)


def _refusal(status: int, answer: Mapping[str, Any]) -> ToolFailed:
    """Return what an answer that is no yes means. Its own sentences are not repeated."""
    code = str(answer.get("errcode") or "")
    if status == 429 or code == "M_LIMIT_EXCEEDED":
        after = answer.get("retry_after_ms")
        wait_s = min(after / 1000, 3_600.0) if isinstance(after, int | float) else 5.0
        return NotSent("The Matrix server got too many requests.", wait_s=wait_s)
    if status >= 500:
        return NotSent(f"The Matrix server has a problem (status {status}).", wait_s=5.0)
    if code == "M_USER_DEACTIVATED":
        return NotSent(REFUSED, wait_s=60.0)
    return MatrixRefused(status, code)
