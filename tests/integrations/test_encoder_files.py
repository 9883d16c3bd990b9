from hashlib import sha256
from pathlib import Path

import pytest

from cortex.base.errors import CortexError, NotAllowed, ToolFailed, UserError
from cortex.integrations.encoder_files import SHIPPED, SHIPPED_FROM, PinnedFile, fetch, policy_of
from tests.file_server import file_server

MODEL, TOKENIZER = b"what a model is made of", b'{"what": "words are"}'
FILES = {"/of/model.onnx": MODEL, "/of/tokenizer.json": TOKENIZER}
PINNED = tuple(
    PinnedFile(name=name, path=name, sha256=sha256(data).hexdigest(), size_bytes=len(data))
    for name, data in (("model.onnx", MODEL), ("tokenizer.json", TOKENIZER))
)


async def get(address: str, into: Path, pinned: tuple[PinnedFile, ...] = PINNED) -> None:
    await fetch(f"{address}/of", pinned, into, policy_of(address))


def there(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}


async def test_both_files_are_put_in_place_and_nothing_else(tmp_path: Path) -> None:
    with file_server(FILES) as server:
        await get(server.address, tmp_path / "encoder")
    assert there(tmp_path / "encoder") == {"model.onnx": MODEL, "tokenizer.json": TOKENIZER}
    assert server.asked == ["/of/model.onnx", "/of/tokenizer.json"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {**FILES, "/of/tokenizer.json": TOKENIZER[::-1]},
            r"has another checksum than expected \(SHA-256 [0-9a-f]{64}\)",
        ),
        ({"/of/model.onnx": MODEL}, "tokenizer.json answered 404"),
        ({**FILES, "/of/tokenizer.json": TOKENIZER + b" "}, "is longer than 21 bytes"),
        ({**FILES, "/of/model.onnx": MODEL[:-1]}, "has another checksum than expected"),
    ],
    ids=["another", "missing", "too long", "cut"],
)
async def test_what_is_not_the_pinned_bytes_leaves_all_as_it_was(
    files: dict[str, bytes], words: str, tmp_path: Path
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"the one before")
    with file_server(files) as server, pytest.raises(UserError, match=words):
        await get(server.address, tmp_path)
    assert there(tmp_path) == {"model.onnx": b"the one before"}


async def test_a_failed_first_download_makes_no_folder(tmp_path: Path) -> None:
    with file_server({}) as server, pytest.raises(UserError):
        await get(server.address, tmp_path / "encoder")
    assert not (tmp_path / "encoder").exists()


async def test_a_typed_address_opens_its_own_place_alone(tmp_path: Path) -> None:
    with file_server(FILES) as inside:
        moved = {"/of/model.onnx": f"{inside.address}/of/model.onnx"}
        with file_server({}, moved) as typed, pytest.raises(NotAllowed):
            await get(typed.address, tmp_path / "encoder")
    assert (typed.asked, inside.asked) == (["/of/model.onnx"], [])
    assert there(tmp_path / "encoder") == {}


async def test_the_published_model_is_never_fetched_from_inside(tmp_path: Path) -> None:
    with file_server(FILES) as server, pytest.raises(NotAllowed):
        await fetch(f"{server.address}/of", PINNED, tmp_path)
    assert server.asked == []


async def test_nobody_at_that_address_is_told(tmp_path: Path) -> None:
    with file_server({}) as server:
        address = server.address
    with pytest.raises(ToolFailed):
        await get(address, tmp_path)


@pytest.mark.parametrize(
    "address",
    ["", "models", "ftp://example.org/x", "https://", "https://ana:word@example.org", "http://example.org:x"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(CortexError, match="is not an address such as"):
        policy_of(address)


def test_the_published_model_is_pinned_to_a_commit_and_by_digest() -> None:
    assert SHIPPED_FROM.startswith("https://")
    assert len(SHIPPED_FROM.rpartition("/")[2]) == 40
    assert [(one.name, len(one.sha256)) for one in SHIPPED] == [("model.onnx", 64), ("tokenizer.json", 64)]
