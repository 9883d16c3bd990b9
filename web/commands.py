"""The commands of `cortex/commands/cli.py` with `serve`, for whoever asks for one of them or for help."""

import asyncio

from cortex.base import scan
from cortex.base.start import settings_in_force
from cortex.commands.cli import app
from cortex.commands.rehearse import rehearse as rehearsed

__all__ = ["app"]


@app.command()
def serve() -> None:
    """Start the daemon and its page."""
    scan.load("web.serve").main()


@app.command(hidden=True)
def rehearse() -> None:
    """Do to a database all that a start does, as an update has a new version do to a copy; prints its revision."""
    make_page = scan.load("web.app").create_app
    print(asyncio.run(rehearsed(settings_in_force(follows=False), make_page)))  # noqa: T201 - its answer


@app.command()
def web() -> None:
    """Start one of several pages on a shared PostgreSQL; turns are run by `cortex worker`."""
    scan.load("web.serve").main_shared()


@app.command()
def worker() -> None:
    """Start one of several processes that run turns on a shared PostgreSQL."""
    scan.load("web.worker").main()
