"""The queues of several workers in the database. The all-in-one process has `engine/slots.py` instead."""

from dbos import DBOS

from cortex.engine.config import AT_ONCE, PER_USER, QUEUE_POLL_S


async def register() -> None:
    """Make the queues known; each worker then takes from them. Those `PER_USER` count over all workers."""
    for name in PER_USER:
        await DBOS.register_queue_async(name, partition_concurrency=AT_ONCE[name], polling_interval_sec=QUEUE_POLL_S)
    for name in AT_ONCE.keys() - PER_USER:
        await DBOS.register_queue_async(name, worker_concurrency=AT_ONCE[name], polling_interval_sec=QUEUE_POLL_S)


async def adopt(version: str) -> None:
    """Take what stands in the queues: where the all-in-one process runs, there are no workers."""
    waiting = await DBOS.list_workflows_async(
        status="ENQUEUED", queue_name=list(AT_ONCE), app_version=version, load_input=False, load_output=False
    )
    if waiting:
        await DBOS.resume_workflows_async([state.workflow_id for state in waiting])
