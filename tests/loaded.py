"""What `cortex` loads, loaded once: `tests/children.py` forks its children from a process that has imported this."""

import gc
import os
import threading

os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as `web/__main__.py` does before it loads anything

import alembic.command
import dbos

import web.app
import web.commands
import web.serve
import web.worker
from cortex.app import shipped_registry
from cortex.base.tokens import count

__all__ = ["alembic", "dbos", "web"]

shipped_registry()
count("its vocabulary")
assert threading.active_count() == 1, threading.enumerate()  # a fork takes none but this one along
gc.freeze()
