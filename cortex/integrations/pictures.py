"""Makes pictures ready for models, in a process of its own: in the sandbox where this machine has one."""

import asyncio
import sys
from pathlib import Path
from typing import BinaryIO, Literal

from msgspec import Struct, field
from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

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
LONGEST_PX = 1_568  # as the program has it, which imports nothing of ours
AT_ONCE = 2  # each may take a processor and a gigabyte
TOO_MUCH = "The picture takes too much time or memory to be read."


class _Answer(BaseModel):
    """The program's answer: it decoded hostile bytes, so nothing of it is believed before it is looked at."""

    model_config = ConfigDict(extra="forbid")
    data: Base64Bytes
    small: Base64Bytes
    media_type: Literal["image/png", "image/jpeg"]
    width: int = Field(gt=0, le=LONGEST_PX)
    height: int = Field(gt=0, le=LONGEST_PX)


class _Refusal(BaseModel):
    model_config = ConfigDict(extra="forbid")
    error: str = Field(max_length=200)


_Made: TypeAdapter[_Answer | _Refusal] = TypeAdapter(_Answer | _Refusal)


class PictureMaker(Struct, frozen=True, kw_only=True):
    """Implements the port `Pictures`."""

    sandbox: Sandbox
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def ready(self, file: BinaryIO) -> ReadyPicture:
        """The picture in the size that models take; UserError in a sentence for one that cannot be read."""
        try:
            async with self._turns:
                ended = await self._run(await asyncio.to_thread(file.read))
            if ended.killed or ended.code != 0:
                raise UserError(TOO_MUCH)
            made = await asyncio.to_thread(_Made.validate_json, ended.out)
        except (ToolFailed, ValidationError) as error:
            raise UserError(TOO_MUCH) from error
        if isinstance(made, _Refusal):
            raise UserError(made.error)
        return ReadyPicture(
            data=made.data, media_type=made.media_type, width=made.width, height=made.height, small=made.small
        )

    async def _run(self, data: bytes) -> ProcessResult:
        argv = [sys.executable, "-I", str(PROGRAM)]
        if (await self.sandbox.probe()).level == "none":
            return await run(argv, cwd=FOLDER, timeout_s=LIMITS.timeout_s, stdin=data, output_bytes=LIMITS.output_bytes)
        readable = (Path(sys.prefix), Path(sys.base_prefix), PROGRAM.parent)
        return await self.sandbox.run(
            argv, workspace=FOLDER, is_writable=False, limits=LIMITS, stdin=data, readable=readable
        )
