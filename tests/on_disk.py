"""A test's folder on the disk, for programs of others: they get nothing below /dev, where folders in memory are."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(name="tmp_path")
def folder_on_disk() -> Iterator[Path]:
    """The folder, in place of pytest's own; gone with the test."""
    with TemporaryDirectory(prefix="cortex-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
