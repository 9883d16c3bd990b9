"""The optional sentence model of a server: which folder, made ready at the first plan that could use it, fetched, told.

Without a folder it costs nothing. A plan never waits for it longer than a quarter of a second: while tools are still
being read, and whenever it fails, the plan goes on without it and says so in its receipt.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import scan
from cortex.base.address import PUBLIC
from cortex.base.clock import ticks_s
from cortex.base.errors import EncoderFailed, UserError
from cortex.base.settings import Settings
from cortex.integrations.encoder_files import SHIPPED, SHIPPED_FROM, PinnedFile, fetch, policy_of
from cortex.ports.encoder import Encoder
from cortex.selection.index import sentence_models
from cortex.selection.types import Snapshot
from cortex.selection.votes.semantic_votes import prepared
from cortex.services.tools.edits import with_encoder

SENTENCES = "cortex.integrations.sentences"  # read with the first plan that can use it
FOLDER, VECTORS = "encoder", "vectors"
MODEL = "model.onnx"
READY_S, ANSWER_S = 0.1, 0.15
NOT_READY = "it is being made ready"
SNAPSHOTS_KEPT = 4
TRIED = "which of these tools fits what was asked?"
TRIES = 20

log = logging.getLogger(__name__)


class State(Struct, frozen=True, kw_only=True):
    """The sentence model's state. `failed`: why it cannot be used; `ms`: for one question of ten words, median."""

    folder: str
    is_there: bool
    failed: str = ""
    key: str = ""
    dimensions: int = 0
    ms: float = 0.0
    kept: int = 0


class SentenceModelHandle(Encoder, Protocol):
    """The parts of `integrations/sentences.py` beside the answers; known by its shape, for that module is heavy."""

    @property
    def dimensions(self) -> int:
        """Numbers of a vector."""
        ...

    @property
    def n_kept(self) -> int:
        """Return how many texts of tools are read."""
        ...

    def close(self) -> None:
        """Stop."""
        ...


class Encoders:
    """The sentence model for plans. `is_there`: a folder is named or was filled.

    `is_hasty`: no plan waits long; else each waits until it is ready, as a command that makes a single one does.
    `opened`: folder, folder for vectors, seconds for an answer (None: as long as it takes) -> what answers.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        is_hasty: bool = True,
        opened: Callable[[Path, Path, float | None], SentenceModelHandle] | None = None,
    ) -> None:
        """Open nothing yet."""
        self._own = settings.home / FOLDER
        self.folder = Path(settings.encoder_folder).expanduser() if settings.encoder_folder else self._own
        self._vectors = settings.home / VECTORS
        self.is_there = bool(settings.encoder_folder) or (self._own / MODEL).is_file()
        self._ready_s = READY_S if is_hasty else None
        self._answer_s = ANSWER_S if is_hasty else None
        self._opened = opened or _opened
        self._encoder: SentenceModelHandle | None = None
        self._readying = threading.Lock()
        self._made: dict[str, Snapshot] = {}
        self._told = ""

    async def over(self, snapshot: Snapshot) -> tuple[Snapshot, str]:
        """The snapshot with the sentence model at hand; or as it is, with the reason, while it is not."""
        if not self.is_there:
            return snapshot, ""
        found = self._made.get(snapshot.version)
        if found is not None:
            return found, ""
        try:
            async with asyncio.timeout(self._ready_s):
                return await asyncio.to_thread(self._ready, snapshot), ""
        except EncoderFailed as error:
            failed = error.message
        except TimeoutError:
            failed = NOT_READY
        if failed not in (NOT_READY, self._told):
            log.warning("sentence model: skipped: %s", failed)
            self._told = failed
        return snapshot, failed

    async def install(self, address: str, digests: tuple[str, str] | None) -> Path:
        """Fetch it into HOME and say where it lies. `address`: "" for where it is published, else a folder of files.

        digests: SHA-256 of model and tokenizer, for another model than the one Cortex knows.
        """
        if digests and not address:
            raise UserError("Use --from to say where the files with these digests are.")
        await fetch(
            address or SHIPPED_FROM,
            _files(address, digests),
            self._own,
            policy_of(address) if address else PUBLIC,
        )
        return self._own

    def state(self) -> State:
        """Return how it stands, after trying it; takes a second, and the memory of the model."""
        folder = str(self.folder)
        if not self.is_there:
            return State(folder=folder, is_there=False)
        encoder = self._opened(self.folder, self._vectors, None)
        try:
            key, dimensions = encoder.key, encoder.dimensions
            taken = sorted(_taken_s(encoder, f"{number} {TRIED}") for number in range(TRIES))
            ms = round(1000 * taken[TRIES // 2], 2)
            return State(
                folder=folder,
                is_there=True,
                key=key,
                dimensions=dimensions,
                ms=ms,
                kept=encoder.n_kept,
            )
        except EncoderFailed as error:
            return State(folder=folder, is_there=True, failed=error.message)
        finally:
            encoder.close()

    def close(self) -> None:
        """Let go of the model."""
        if self._encoder is not None:
            sentence_models.unregister(self._encoder)
            self._encoder.close()

    def _ready(self, snapshot: Snapshot) -> Snapshot:
        """Off the event loop: load, read what is new, learn what a likeness is worth; EncoderFailed until then."""
        if not self._readying.acquire(blocking=False):
            raise EncoderFailed(NOT_READY)
        try:
            return self._made_ready(snapshot)
        finally:
            self._readying.release()

    def _made_ready(self, snapshot: Snapshot) -> Snapshot:
        if self._encoder is None:
            self._encoder = self._opened(self.folder, self._vectors, self._answer_s)
        sentence_models.register(self._encoder)
        made = with_encoder(snapshot, self._encoder.key)
        if not prepared(made):
            log.warning("sentence model: cannot be calibrated here, used for searches only")
        self._made[snapshot.version] = made
        while len(self._made) > SNAPSHOTS_KEPT:
            del self._made[next(iter(self._made))]
        return made


def _opened(folder: Path, kept_in: Path, limit_s: float | None) -> SentenceModelHandle:
    made: SentenceModelHandle = scan.load(SENTENCES).Sentences(folder, kept_in, limit_s=limit_s)
    return made


def _taken_s(encoder: SentenceModelHandle, said: str) -> float:
    started_s = ticks_s()
    encoder.asked([said])
    return ticks_s() - started_s


def _files(address: str, digests: tuple[str, str] | None) -> tuple[PinnedFile, ...]:
    """The pinned files: as published, or by their plain names below another address."""
    if digests:
        pairs = zip(SHIPPED, digests, strict=True)
        return tuple(PinnedFile(name=one.name, path=one.name, sha256=digest) for one, digest in pairs)
    return tuple(replace(one, path=one.name) for one in SHIPPED) if address else SHIPPED
