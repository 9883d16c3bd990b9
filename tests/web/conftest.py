"""A house at rest (no engine) with an admin and a member, and a browser for each: real tables, real templates."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.accounts.accounts import CONFIRMED_FOR
from cortex.storage.accounts import LoginsRepository
from tests.databases import copy_home, house_settings
from tests.scripted_server import ScriptedServer
from tests.web.talks import Talks, talking_house
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A home with two people in it, made once and copied for each test: hashing passwords takes its time by design."""

    home: Path
    tokens: dict[str, str]


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seed:
    home = tmp_path_factory.mktemp("seed") / "home"

    async def made() -> dict[str, str]:
        async with Cortex.at_rest(house_settings(home)) as cortex:
            await cortex.accounts.add_user("Ada", "admin", PASSWORD)
            await cortex.accounts.add_user("Bob", "member", PASSWORD)
            return {name: await cortex.accounts.login(name, PASSWORD, "127.0.0.1", "test") for name in ("Ada", "Bob")}

    return Seed(home=home, tokens=asyncio.run(made()))


@pytest.fixture
async def empty_house(tmp_path: Path) -> AsyncIterator[Cortex]:
    async with Cortex.at_rest(house_settings(tmp_path / "empty")) as cortex:
        yield cortex


@pytest.fixture
async def house(tmp_path: Path, seed: Seed) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    async with Cortex.at_rest(house_settings(tmp_path / "home", offline_delay_ms=0)) as cortex:
        yield cortex


@pytest.fixture
def app(house: Cortex) -> FastAPI:
    return create_app(house)


def browser(app: FastAPI, token: str = "") -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://localhost",
        headers={"Sec-Fetch-Site": "same-origin", "Accept": "text/html"},
        cookies={COOKIE: token} if token else {},
    )


async def logged_in(app: FastAPI, house: Cortex, name: str, token: str = "") -> Browser:
    """The browser of a person: logged in afresh, or by the seed's token with the password given a moment ago."""
    token = token or await house.accounts.login(name, PASSWORD, "127.0.0.1", "another browser")
    view = await house.accounts.who(token)
    assert view
    await house.runtime.db.repository(LoginsRepository, view.user.id).confirm(
        view.login_id, house.runtime.clock() + CONFIRMED_FOR
    )
    return Browser(user=view.user, http=browser(app, token))


@pytest.fixture
async def visitor(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(app) as client:
        yield client


@pytest.fixture
async def first_visitor(empty_house: Cortex) -> AsyncIterator[httpx.AsyncClient]:
    async with browser(create_app(empty_house)) as client:
        yield client


@pytest.fixture
async def ada(app: FastAPI, house: Cortex, seed: Seed) -> AsyncIterator[Browser]:
    person = await logged_in(app, house, "Ada", seed.tokens["Ada"])
    async with person.http:
        yield person


@pytest.fixture
async def bob(app: FastAPI, house: Cortex, seed: Seed) -> AsyncIterator[Browser]:
    person = await logged_in(app, house, "Bob", seed.tokens["Bob"])
    async with person.http:
        yield person


@pytest.fixture
async def talks(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Talks]:
    """A house whose model is scripted, with a talk in it."""
    async with talking_house(tmp_path / "home", scripted) as opened:
        yield opened


@pytest.fixture
def served(talks: Talks) -> FastAPI:
    """Its pages."""
    return create_app(talks.living.cortex)


@pytest.fixture
async def page(served: FastAPI, talks: Talks) -> AsyncIterator[httpx.AsyncClient]:
    """A browser there, of the person who held the talk and gave the password a moment ago."""
    async with (await logged_in(served, talks.living.cortex, "Ada", talks.held.token)).http as http:
        yield http
