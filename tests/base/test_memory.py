"""What the process takes from the machine, and what its children do not inherit of that."""

import os
import platform
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

THREADS_TAKE_MEMORY = """
import ctypes, re, subprocess, sys, threading
from cortex.base import memory
if "shared" in sys.argv:
    memory.share_one_arena()
together = threading.Barrier(6)
def take():
    ctypes.create_string_buffer(4_000)
    together.wait()
    ctypes.create_string_buffer(4_000)
    together.wait()
threads = [threading.Thread(target=take) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
bounds = re.findall(r"(?m)^([0-9a-f]+)-[0-9a-f]+ rw-p [0-9a-f]+ 00:00 0\\s*$", open("/proc/self/maps").read())
print(sum(int(one, 16) % (64 << 20) == 0 for one in bounds))
"""


def _places(*words: str, **settings: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", THREADS_TAKE_MEMORY, *words],
        env={**os.environ, "PYTHONPATH": os.getcwd(), **settings},
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has such places")
def test_all_threads_take_from_one_place_of_memory_unless_whoever_starts_cortex_says_otherwise() -> None:
    assert _places() > 0
    assert _places("shared") == 0
    assert _places("shared", MALLOC_ARENA_MAX="4") > 0
