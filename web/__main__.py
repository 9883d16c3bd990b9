"""The program `cortex`: `serve` and `jobs preview` at once, every other command by `web/commands.py`."""

import gc
import os
import signal
import sys

from cortex.base import lazy, memory, open_files, scan
from cortex.base.errors import CortexError

# Thirty pydantic models of what an API is like, which FastAPI makes for a page that we do not serve: 2.3 MB, 50 ms.
DESCRIBING = ("fastapi.openapi.models",)


def main() -> None:
    """Run a command; what went wrong is one line on standard error and exit code 1."""
    gc.disable()  # what is loaded stays: looking for garbage in it cost a tenth of the start; `serve` enables it again
    if sys.argv[1:] in (["serve"], ["web"], ["worker"]):
        _leave_when_told()
        memory.share_one_arena()
        open_files.raise_limit()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads what every package on the disk offers
    try:
        if sys.argv[1:] in (["serve"], ["web"]):
            lazy.import_naming("fastapi", *DESCRIBING)
        if sys.argv[1:] == ["serve"]:
            scan.load("web.serve").main()
        elif sys.argv[1:3] == ["jobs", "preview"]:
            scan.load("cortex.commands.preview").app()
        else:
            commands = scan.load("web.commands")
            gc.enable()
            commands.app()
    except CortexError as error:
        _end(error.message)
    except OSError as error:  # what a database refuses is a CortexError already: `cortex/app.py` sees to it
        sentence = scan.load("cortex.base.faults").explain(error)
        if not sentence:
            raise
        _end(sentence)


def _leave_when_told() -> None:
    """Until `web/signals.py` hears them: end in order, for nothing is open yet, also in a container of its own."""
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if ending != signal.SIGHUP or signal.getsignal(ending) != signal.SIG_IGN:  # as nohup has it
            signal.signal(ending, lambda *_: os._exit(0))
    for order in (signal.SIGUSR1, signal.SIGUSR2):  # by default they kill
        signal.signal(order, lambda *_: None)


def _end(sentence: str) -> None:
    sys.stderr.write(f"cortex: {sentence}\n")
    sys.exit(1)


if __name__ == "__main__":
    main()
