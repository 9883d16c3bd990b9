"""Programs that take what they can get, as far as a machine stays whole that holds nothing."""

COUNTED = """
import os, signal, time
started = 0
while started < 1_000:
    try:
        if os.fork() == 0:
            time.sleep(600)
    except BlockingIOError:
        break
    started += 1
print(started, flush=True)
os.killpg(0, signal.SIGKILL)  # what still runs holds the pipe open
"""
