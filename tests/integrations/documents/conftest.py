"""The real program that reads documents, shut in."""

from collections.abc import AsyncIterator

import pytest

from cortex.integrations.foreign.documents import DocumentReader, ReadingSession
from cortex.integrations.sandbox import Sandbox


@pytest.fixture
async def session() -> AsyncIterator[ReadingSession]:
    sandbox = Sandbox()
    probe = await sandbox.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    async with DocumentReader(sandbox, is_boxed=True).session() as made:
        yield made
