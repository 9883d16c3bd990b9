"""The program `cortex`: the commands of `cortex/cli.py` and `serve`."""

import sys

from cortex import cli
from cortex.base import scan
from cortex.base.errors import CortexError


@cli.app.command()
def serve() -> None:
    """Start the daemon and its page."""
    scan.load("web.serve").run(cli.settings_in_force())


def main() -> None:
    """Run a command; what went wrong is one line on standard error and exit code 1."""
    try:
        cli.app()
    except CortexError as error:
        sys.stderr.write(f"cortex: {error.message}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
