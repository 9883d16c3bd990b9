"""What `cortex` loads, loaded once: `tests/children.py` forks its children from a process that has imported this.

Of the providers' libraries, 2 s of processor each, only the one that most tests talk to; `test_second_daemon.py` takes
another, so that the watchdog sees where one that is not there yet is loaded.
"""

import gc
import os
import threading

os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"  # as `web/__main__.py` does before it loads anything

import aiosqlite
import alembic.command
import dbos
import dbos._sys_db_sqlite
from sqlalchemy.orm import configure_mappers

import cortex.providers.openai
import web.app
import web.commands
import web.serve
import web.worker
from cortex.app import shipped_registry
from cortex.base import scan
from cortex.base.tokens import count
from tests import cheap_passwords

__all__ = ["aiosqlite", "alembic", "cortex", "dbos", "web"]

shipped_registry()
for page in scan.modules("web.pages"):
    scan.load(f"web.pages.{page}")
configure_mappers()
cheap_passwords.make_cheap()
count("its vocabulary")
assert threading.active_count() == 1, threading.enumerate()  # a fork takes none but this one along
gc.freeze()
