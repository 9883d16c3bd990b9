import pytest

from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import Snapshot
from cortex.tools import load
from tests.selection.made import HOUSE


@pytest.fixture(scope="session")
def shipped() -> Snapshot:
    return snapshot_of(load())


@pytest.fixture(scope="session")
def house() -> Snapshot:
    return HOUSE
