"""The end of an event loop that a test's server had in a thread of its own."""

import asyncio


def close(loop: asyncio.AbstractEventLoop) -> None:
    """End what still runs on the stopped loop, and every line, also one accepted in the last moment; then close it.

    A line that is left to the garbage collector is told of in whatever test runs then.
    """
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_ended(tasks))
    for transport in list(getattr(loop, "_transports", {}).values()):  # the one list of them, until asyncio has its own
        transport.abort()
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


async def _ended(tasks: set["asyncio.Task[object]"]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
