"""The queues of several workers in the database. The all-in-one process has `engine/slots.py` instead."""

from dbos import DBOS

from cortex.engine.config import AT_ONCE, AT_ONCE_HERE, PER_USER


async def register(poll_s: float) -> None:
    """Make the queues known; each worker then takes from them, and looks every `poll_s` unless it is woken.

    Those `PER_USER` count for each user over all workers, and have a limit for each worker beside that.
    """
    for name in PER_USER:
        await DBOS.register_queue_async(
            name,
            partition_concurrency=AT_ONCE[name],
            worker_concurrency=AT_ONCE_HERE[name],
            polling_interval_sec=poll_s,
        )
    for name in AT_ONCE.keys() - PER_USER:
        await DBOS.register_queue_async(name, worker_concurrency=AT_ONCE[name], polling_interval_sec=poll_s)


async def adopt(version: str) -> None:
    """Take what stands in the queues: where the all-in-one process runs, there are no workers."""
    waiting = await DBOS.list_workflows_async(
        status="ENQUEUED", queue_name=list(AT_ONCE), app_version=version, load_input=False, load_output=False
    )
    if waiting:
        await DBOS.resume_workflows_async([state.workflow_id for state in waiting])
