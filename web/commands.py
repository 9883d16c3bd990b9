"""The commands of `cortex/cli.py` with `serve`, for whoever asks for one of them or for help."""

from cortex.base import scan
from cortex.cli import app

__all__ = ["app"]


@app.command()
def serve() -> None:
    """Start the daemon and its page."""
    scan.load("web.serve").main()
