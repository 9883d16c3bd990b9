"""The end of an event loop that a test's server had in a thread of its own."""

import asyncio


def close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs on the stopped loop, and every line, also one accepted in the last moment; then close it.

    A line that is left to the garbage collector is told of in whatever test runs then.
    """
    while loop.run_until_complete(_has_ended_some()):
        pass  # ending one thing can begin another: a connection that was accepted meanwhile
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _has_ended_some() -> bool:
    """Whether there was anything to end."""
    loop = asyncio.get_running_loop()
    tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
    lines = list(getattr(loop, "_transports", {}).values())  # the one list of them, until asyncio has its own
    has_open = any(not line.is_closing() for line in lines)
    for task in tasks:
        task.cancel()
    for line in lines:
        line.abort()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)
    return bool(tasks) or has_open
