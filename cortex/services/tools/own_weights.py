"""Brings a server's own fitted model to where plans are made, or says why the shipped one judges instead."""

import hashlib
import logging

from cortex.selection.model import weights
from cortex.selection.types import Snapshot
from cortex.services.tools.edits import with_weights
from cortex.storage.refits import RefitRow

log = logging.getLogger(__name__)


def is_loaded(refit: RefitRow) -> bool:
    """Tell whether its bytes were read in this process."""
    return weights.is_kept(refit.key)


def digest_of(data: bytes) -> str:
    """Return what a model is known by."""
    return hashlib.sha256(data).hexdigest()[:16]


def rests_on() -> str:
    """Return what a refit made now rests on: the form of the weights, and what the shipped ones were fitted on."""
    return f"{weights.FORMAT} {weights.shipped().examples}"


def is_current(refit: RefitRow) -> bool:
    """Tell whether it rests on the model that ships now; after an update it has to be made anew."""
    return refit.base == rests_on()


def with_own_model(snapshot: Snapshot, refit: RefitRow, data: bytes | None) -> Snapshot:
    """The snapshot judged by the refit; by the shipped model, with a line in the log, where the refit cannot be used.

    data: its bytes, None where they are loaded.
    """
    if not is_current(refit):
        log.warning(
            "selection: refit %d is based on an older model, using the shipped one until a new refit", refit.number
        )
        return snapshot
    if data is not None:
        try:
            found = weights.from_compressed(data) if digest_of(data) == refit.digest else None
        except ValueError:
            found = None
        if found is None:
            log.error("selection: refit %d is damaged in the database, using the shipped model", refit.number)
            return snapshot
        weights.keep(refit.key, found)
    return with_weights(snapshot, refit.key)
