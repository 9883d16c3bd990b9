"""The engine's fixed choices: names that are kept with every run, intervals, limits.

`VERSION` is pinned: with an automatic one every upgrade would strand the turns that are running.
"""

import sqlalchemy as sa
from dbos import DBOSConfig, DBOSPortableJSONSerializer

APP = "cortex"
VERSION = "cortex-1"
THREADS = 24  # also the event loop's default pool, while an engine is open

AT_ONCE = {"chat": 3, "api": 8, "agents": 4}
PER_USER = ("chat", "api")  # these count for each user
AT_ONCE_HERE = {"chat": 24, "api": 24}  # of everybody, in one worker; what waits for a person does not count
QUEUE_POLL_S = 2.0  # where nobody tells of what others put in line
SIGNALLED_POLL_S = 60.0  # where a start is broadcast: the poll finds those whose broadcast was lost
EAGER_S = 5.0  # after a start: runs left over are resumed at once
LISTEN_POLL_S = 0.25  # SQLite only: how soon a signal wakes a waiting run
CANCEL_POLL_S = 0.5  # how soon a cancel made by another process is seen
SWEEP_S = 300.0  # how often the steps of runs that ended are let go of
RECOVERY_POLL_S = 2.0  # how soon a dead process is, where anything runs
STIRRED_S = 60.0  # so long after the last news the looks go on as often

OPEN_STATES = ["PENDING", "ENQUEUED", "DELAYED"]
STATES = {
    "PENDING": "running",
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "SUCCESS": "done",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}
ENDED_STATES = [state for state in STATES if state not in OPEN_STATES]
PRUNE_AT_ONCE = 200  # runs deleted in one transaction


def config(database: sa.Engine, executor_id: str, version: str) -> DBOSConfig:
    """DBOS's settings: our database, portable JSON, no telemetry, no console, few threads."""
    return {
        "name": APP,
        "system_database_engine": database,
        "serializer": DBOSPortableJSONSerializer(),
        "application_version": version,
        "executor_id": executor_id,
        "max_executor_threads": THREADS,
        "notification_listener_polling_interval_sec": LISTEN_POLL_S,
        "notification_coalesce_sec": 0.1,
        "enable_otlp": False,
        "log_level": "WARNING",
    }
