"""The commands of `cortex/commands/cli.py` with `serve`, for whoever asks for one of them or for help."""

from cortex.base import scan
from cortex.commands.cli import app

__all__ = ["app"]


@app.command()
def serve() -> None:
    """Start the daemon and its page."""
    scan.load("web.serve").main()


@app.command()
def web() -> None:
    """Start one of several pages on a shared PostgreSQL; turns are run by `cortex worker`."""
    scan.load("web.serve").main_shared()


@app.command()
def worker() -> None:
    """Start one of several processes that run turns on a shared PostgreSQL."""
    scan.load("web.worker").main()
