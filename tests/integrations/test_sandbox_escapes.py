"""Ways out by ordinary programs (`escapes.txt`): none reads, writes, kills or reaches anything outside, on any rung."""

import asyncio
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.integrations.sandbox import Limits
from tests.integrations.rungs import Rung, lacking, rung_on
from tests.patience import PATIENCE_S

ESCAPES = [
    line for line in Path(__file__).with_name("escapes.txt").read_text().splitlines() if not line.startswith("#")
]
LIMITS = Limits(timeout_s=PATIENCE_S, output_bytes=1_000_000)


@pytest.fixture(
    params=[
        pytest.param(level, marks=pytest.mark.skipif(bool(why := lacking(level)), reason=f"needs {level}: {why}"))
        for level in ("bubblewrap", "landlock")
    ]
)
def rung(request: pytest.FixtureRequest) -> Iterator[Rung]:
    with rung_on(request.param) as made:
        yield made


async def test_no_program_leads_outside(rung: Rung) -> None:
    reached = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        writer.close()

    victim = await asyncio.create_subprocess_exec("/bin/sleep", "300", env={"WORD": "the-secret-text"})
    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        facts = {"secret": rung.secret, "outside": rung.home / "outside", "pid": victim.pid}
        facts["port"] = server.sockets[0].getsockname()[1]
        lines = [line.format(**facts) for line in ESCAPES]
        # Each for itself, in a folder of its own; an empty one is on the list of those that could be run.
        script = "\n".join(
            f"mkdir {n}; (cd {n} && timeout 4 bash -c {shlex.quote(line)} < /dev/null); echo ran-{n}"
            for n, line in enumerate(lines)
        )
        ended = await rung.run(script, limits=LIMITS)
    assert [n for n in range(len(lines)) if f"ran-{n}\n" not in ended.out] == [], ended.killed
    assert "the-secret-text" not in ended.out
    assert "the-secret-text" not in ended.err
    assert _traces(rung) == []
    assert not reached.is_set()
    assert victim.returncode is None
    victim.kill()
    await victim.wait()


def _traces(rung: Rung) -> list[str]:
    """What is in the home now and was not, and where the secret's text has got to."""
    new = {path.name for path in rung.home.iterdir()} - {"files", "secret", "code"}
    kept = [] if rung.secret.read_text() == "the-secret-text\n" else ["secret"]
    copies = subprocess.run(["/bin/grep", "-rl", "the-secret-text", str(rung.files)], capture_output=True, check=False)
    return [*new, *kept, *copies.stdout.decode().splitlines()]


def test_the_list_is_a_tenth_of_the_closed_one() -> None:
    assert len(ESCAPES) >= 83
