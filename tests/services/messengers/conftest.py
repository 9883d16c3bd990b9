"""One Synapse for all tests of this folder that need one."""

from collections.abc import Iterator

import pytest

from tests.matrix import MatrixTown
from tests.synapse import MISSING, PYTHON, Synapse, synapse


@pytest.fixture(scope="session")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Synapse]:
    if not PYTHON.exists():
        pytest.skip(MISSING)
    with synapse(tmp_path_factory.mktemp("synapse")) as server:
        yield server


@pytest.fixture
def town(homeserver: Synapse) -> Iterator[MatrixTown]:
    with MatrixTown(homeserver) as there:
        yield there
