"""One server for all the tests of a run in this folder."""

from collections.abc import Iterator

import pytest

from tests.mariadb import MariaServer
from tests.shop import shop_server


@pytest.fixture(scope="session")
def shop() -> Iterator[MariaServer]:
    """The shop's server; tests leave it as they found it."""
    with shop_server() as server:
        yield server
