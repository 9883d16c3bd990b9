"""The line between processes on a real PostgreSQL: in order, in batches, and back after it was cut."""

import asyncio
import logging
from collections.abc import Iterator

import psycopg
import pytest

from cortex.base.background import background_tasks
from cortex.engine import wire as wires
from cortex.engine.relay import relayed
from cortex.engine.wire import NotifyConnection
from tests.databases import PostgresTemplate
from tests.patience import PATIENCE_S


@pytest.fixture
def url(postgres_template: PostgresTemplate) -> Iterator[str]:
    made = postgres_template.empty()
    yield made
    postgres_template.drop(made)


async def test_what_is_told_is_heard_in_order_after_a_cut_too(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wires, "AGAIN_AFTER_S", 0.05)
    heard: list[str] = []
    wire = NotifyConnection(url, heard.append, lambda: None)
    many = [f"{number} {'x' * 7000}" for number in range(200)]
    async with asyncio.timeout(PATIENCE_S), background_tasks(wire.listen, wire.speak):
        await wire.is_listening.wait()
        for one in many:
            wire.broadcast(one)
        await wire.flushed()
        while len(heard) < len(many):  # noqa: ASYNC110 - the list fills without a word
            await asyncio.sleep(0.01)
        assert heard == many
        with caplog.at_level(logging.WARNING):
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
                await other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cortex-wire'"
                )
            while "late" not in heard:  # what is told while the line is down may be lost: others make up for it
                wire.broadcast("late")
                await asyncio.sleep(0.1)
        assert "processes lost" in caplog.text


async def test_two_relays_hear_each_other_until_they_close(url: str) -> None:
    heard: list[str] = []
    async with asyncio.timeout(PATIENCE_S), relayed(url) as one:
        async with relayed(url) as other:
            one.on("news", heard.append)
            while not heard:
                other.broadcast("news", "good")
                await asyncio.sleep(0.05)
            other.broadcast("news", "last words")
        while "last words" not in heard:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
