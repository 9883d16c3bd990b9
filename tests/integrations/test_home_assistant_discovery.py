"""A Home Assistant that announces itself is found by mDNS, on this machine's own network alone."""

from collections.abc import AsyncIterator

import pytest
from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from cortex.integrations.home_assistant.discovery import TYPE, FoundHome, homes_in_network

HERE = ("127.0.0.1",)


@pytest.fixture
async def announced() -> AsyncIterator[None]:
    try:
        opened = AsyncZeroconf(interfaces=list(HERE), ip_version=IPVersion.V4Only)
    except OSError:
        pytest.skip("needs multicast on the loopback network")
    facts = {"location_name": "Our\nhouse", "version": "2024.3.3", "internal_url": "", "base_url": ""}
    info = AsyncServiceInfo(
        TYPE, f"House.{TYPE}", addresses=[bytes([127, 0, 0, 1])], port=8123, properties=facts, server="abc.local."
    )
    await opened.async_register_service(info)
    yield
    await opened.async_close()


@pytest.mark.usefixtures("announced")
async def test_what_announces_itself_is_found_by_name_and_address() -> None:
    found = await homes_in_network(look_s=1.0, interfaces=HERE)
    assert found == [FoundHome(name="Our house", address="http://127.0.0.1:8123", version="2024.3.3")]


async def test_where_nothing_answers_nothing_is_found() -> None:
    assert await homes_in_network(look_s=0.2, interfaces=HERE) == []
