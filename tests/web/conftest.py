"""A house at rest (no engine) with an admin and a member, and a browser for each: real tables, real templates."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from cortex.app import Cortex
from cortex.base.settings import Settings, load_settings
from cortex.base.user import User
from web.app import create_app
from web.security import COOKIE

PASSWORD = "a few words in a row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """A logged-in person's browser; `fragment` asks as htmx does."""

    user: User
    http: httpx.AsyncClient

    async def get(self, path: str) -> httpx.Response:
        return await self.http.get(path)

    async def post(self, path: str, **fields: object) -> httpx.Response:
        return await self.http.post(path, data={name: str(value) for name, value in fields.items()})

    async def fragment(self, path: str) -> httpx.Response:
        return await self.http.get(path, headers={"HX-Request": "true", "HX-Request-Type": "partial"})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(None, home=tmp_path / "home", offline_delay_ms=0)


@pytest.fixture
async def empty_house(settings: Settings) -> AsyncIterator[Cortex]:
    async with Cortex.at_rest(settings) as cortex:
        yield cortex


@pytest.fixture
async def house(empty_house: Cortex) -> Cortex:
    await empty_house.accounts.add_user("Ada", "admin", PASSWORD)
    await empty_house.accounts.add_user("Bob", "member", PASSWORD)
    return empty_house


@pytest.fixture
def app(empty_house: Cortex) -> FastAPI:
    return create_app(empty_house)


def browser(app: FastAPI, token: str = "") -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"},
        cookies={COOKIE: token} if token else {},
    )


async def logged_in(app: FastAPI, house: Cortex, name: str) -> Browser:
    token = await house.accounts.login(name, PASSWORD, "127.0.0.1", "test browser")
    return Browser(user=await house.accounts.named(name), http=browser(app, token))


@pytest.fixture
async def visitor(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(app) as client:
        yield client


@pytest.fixture
async def ada(app: FastAPI, house: Cortex) -> AsyncIterator[Browser]:
    person = await logged_in(app, house, "Ada")
    async with person.http:
        yield person


@pytest.fixture
async def bob(app: FastAPI, house: Cortex) -> AsyncIterator[Browser]:
    person = await logged_in(app, house, "Bob")
    async with person.http:
        yield person
