"""Programs that other people wrote for other servers, in an environment of their own, from `make clients`."""

import asyncio
import json
import os
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from typing import Any

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex"
CLIENTS = CACHE / "clients" / "bin"
NO_CLIENTS = "" if (CLIENTS / "python").exists() else "the clients are not here: run `make clients`"
SCRIPTS = Path(__file__).parent / "clients"
LIMIT_S = 180.0


async def said_by(script: str, origin: str, token: str, home: Path) -> Any:
    """What a script of `tests/clients` prints at its end, as JSON; its whole output where it fails."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    env = {**kept, "HOME": str(home), "ORIGIN": origin, "TOKEN": token, "PYTHONWARNINGS": "ignore"}
    program = await asyncio.create_subprocess_exec(
        CLIENTS / "python", SCRIPTS / script, env=env, cwd=home, stdout=PIPE, stderr=STDOUT
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            out, _ = await program.communicate()
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    text = out.decode(errors="replace")
    assert program.returncode == 0, text
    return json.loads(text.strip().splitlines()[-1])
