"""Makes pictures ready for models, in a process of its own: in the sandbox where this machine has one."""

import asyncio
import base64
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from cortex.base.errors import ToolFailed, UserError
from cortex.integrations.process import ProcessResult, run
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox
from cortex.ports.documents import ReadyPicture

PROGRAM = Path(__file__).with_name("picture_maker.py")
FOLDER = Path("/usr")
LIMITS = Limits(
    timeout_s=40.0, cpu_s=20, memory_bytes=1_500 * MB, address_bytes=2_000 * MB, processes=16, output_bytes=8 * MB
)
TOO_MUCH = "The picture takes too much time or memory to be read."


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureMaker:
    """Implements the port `Pictures`."""

    sandbox: Sandbox

    async def ready(self, path: Path) -> ReadyPicture:
        """The picture in the size that models take; UserError in a sentence for one that cannot be read."""
        data = await asyncio.to_thread(path.read_bytes)
        try:
            ended = await self._run(data)
        except ToolFailed as error:
            raise UserError(TOO_MUCH) from error
        if ended.killed or ended.code != 0:
            raise UserError(TOO_MUCH)
        made = json.loads(ended.out)
        if "error" in made:
            raise UserError(str(made["error"]))
        return ReadyPicture(
            data=base64.b64decode(made["data"]),
            media_type=made["media_type"],
            width=made["width"],
            height=made["height"],
            small=base64.b64decode(made["small"]),
        )

    async def _run(self, data: bytes) -> ProcessResult:
        argv = [sys.executable, "-I", str(PROGRAM)]
        if (await self.sandbox.probe()).level == "none":
            return await run(argv, cwd=FOLDER, timeout_s=LIMITS.timeout_s, stdin=data, output_bytes=LIMITS.output_bytes)
        readable = (Path(sys.prefix), Path(sys.base_prefix), PROGRAM.parent)
        return await self.sandbox.run(
            argv, workspace=FOLDER, is_writable=False, limits=LIMITS, stdin=data, readable=readable
        )
