"""Files from the chat: read in stretches, written with a way back, never outside the folders."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from cortex.base.errors import Conflict, CortexError, NotFound, ToolFailed
from cortex.base.user import User
from cortex.integrations.sandbox import Sandbox
from cortex.toolkit.context import UndoNote
from tests.integrations.paths import TRAVERSALS
from tests.tool_world import World

SECRET = "the secret of the house"


@pytest.fixture
def own(world: World, ann: User) -> Path:
    place = world.homes.root / ann.id / "files"
    (place / "sub").mkdir(parents=True)
    (place / "notes.md").write_text("one\ntwo\nthree\n")
    (place / "sub" / "deep.txt").write_text("needle here\n")
    (world.homes.root / "cortex.db").write_text(SECRET)
    (place / "up").symlink_to(world.homes.root)
    (place / "link.txt").symlink_to(world.homes.root / "cortex.db")
    (place / "pipe").mkdir()
    return place


async def test_a_file_is_read(world: World, ann: User, own: Path) -> None:
    assert await world.text(ann, "file_read", path="notes.md") == "one\ntwo\nthree\n"


async def test_a_long_file_is_read_in_stretches(world: World, ann: User, own: Path) -> None:
    (own / "long.txt").write_text("x" * 7_000 + "the end")
    assert "offset=6000" in await world.text(ann, "file_read", path="long.txt")
    assert (await world.text(ann, "file_read", path="long.txt", offset=6_990)).endswith("the end")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("grüße".encode(), "grüße"),
        ("grüße".encode("latin-1"), "grüße"),
        (b"\xff\xfe" + "grüße".encode("utf-16-le"), "grüße"),
        (b"\xef\xbb\xbfhello", "hello"),
        (b"", "(the file is empty)"),
    ],
    ids=["utf-8", "latin-1", "utf-16", "mark", "empty"],
)
async def test_texts_of_several_encodings(world: World, ann: User, own: Path, data: bytes, text: str) -> None:
    (own / "t.txt").write_bytes(data)
    assert await world.text(ann, "file_read", path="t.txt") == text


async def test_binary_files_are_not_poured_out(world: World, ann: User, own: Path) -> None:
    (own / "b.bin").write_bytes(b"\x7fELF\0\0\0")
    with pytest.raises(ToolFailed, match="not a text file"):
        await world.text(ann, "file_read", path="b.bin")


async def test_folders_are_listed(world: World, ann: User, own: Path) -> None:
    text = await world.text(ann, "file_list")
    assert "sub/" in text.splitlines()
    assert "notes.md (14 bytes, " in text
    assert "deep.txt" not in text
    assert "sub/deep.txt" in await world.text(ann, "file_list", deep=True)
    assert (await world.text(ann, "file_list", pattern="*.TXT")).startswith("link.txt")
    assert await world.text(ann, "file_list", path="pipe") == "Nothing is there."


async def test_allowed_folders_are_named(world: World, ann: User, own: Path, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text("pass\n")
    world.allowed["project"] = tmp_path / "project"
    assert "Allowed folders: project:" in await world.text(ann, "file_list")
    assert await world.text(ann, "file_read", path="project:main.py") == "pass\n"


async def test_a_new_file_is_written_and_taken_back(world: World, ann: User, own: Path) -> None:
    text, note = await world.noted(ann, "file_write", path="new/poem.txt", text="roses")
    assert "new/poem.txt" in text
    assert (own / "new" / "poem.txt").read_text() == "roses"
    _, again = await world.undo_twice(ann, "file", note)
    assert (own / "new" / "poem.txt").read_text() == "roses"
    await world.undo(ann, "file", again)
    assert not (own / "new" / "poem.txt").exists()


async def test_an_overwritten_file_is_put_back(world: World, ann: User, own: Path) -> None:
    (own / "b.bin").write_bytes(b"\x00\xff")
    _, note = await world.noted(ann, "file_write", path="b.bin", text="text now")
    _, again = await world.undo_twice(ann, "file", note)
    assert (own / "b.bin").read_bytes() == b"text now"
    await world.undo(ann, "file", again)
    assert (own / "b.bin").read_bytes() == b"\x00\xff"


async def test_a_passage_is_replaced(world: World, ann: User, own: Path) -> None:
    await world.text(ann, "file_write", path="notes.md", text="2", replace="two")
    assert (own / "notes.md").read_text() == "one\n2\nthree\n"


@pytest.mark.parametrize("passage", ["zwei", "\n"])
async def test_a_passage_must_be_there_once(world: World, ann: User, own: Path, passage: str) -> None:
    with pytest.raises(ToolFailed, match="exactly once"):
        await world.text(ann, "file_write", path="notes.md", text="unheard of", replace=passage)


async def test_a_repeated_step_writes_nothing_new(world: World, ann: User, own: Path) -> None:
    for _ in range(2):
        await world.text(ann, "file_write", path="notes.md", text="2", replace="two")
    assert (own / "notes.md").read_text() == "one\n2\nthree\n"


async def test_a_file_that_changed_since_is_not_put_back(world: World, ann: User, own: Path) -> None:
    _, note = await world.noted(ann, "file_write", path="notes.md", text="new")
    (own / "notes.md").write_text("by hand")
    with pytest.raises(Conflict):
        await world.undo(ann, "file", note)
    assert (own / "notes.md").read_text() == "by hand"


async def test_two_files_are_compared(world: World, ann: User, own: Path) -> None:
    (own / "other.md").write_text("one\n2\nthree\n")
    text = await world.text(ann, "file_diff", old="notes.md", new="other.md")
    assert text.splitlines()[-4:] == [" one", "-two", "+2", " three"]
    assert "the same" in await world.text(ann, "file_diff", old="notes.md", new="notes.md")


async def test_lines_are_found(world: World, ann: User, own: Path) -> None:
    assert await world.text(ann, "file_grep", pattern="need.e") == "sub/deep.txt:1: needle here"
    assert await world.text(ann, "file_grep", pattern="T[WH]", ignore_case=True, path="notes.md") == (
        "notes.md:2: two\nnotes.md:3: three"
    )
    assert await world.text(ann, "file_grep", pattern="needle", names="*.md") == "Nothing matches."


async def test_a_pattern_that_would_hang_is_cut_off(world: World, ann: User, own: Path) -> None:
    (own / "evil.txt").write_text("a" * 5_000 + "!")
    with pytest.raises(ToolFailed, match="too long"):
        await world.text(ann, "file_grep", pattern="(a+)+$", path="evil.txt")


async def test_syntax_is_checked(world: World, ann: User, own: Path) -> None:
    (own / "a.json").write_text("{")
    assert "not well-formed" in await world.text(ann, "file_syntax_check", path="a.json")
    (own / "a.py").write_text("a = 1\n")
    fine = await world.text(ann, "file_syntax_check", path="a.py")
    assert ("not" in fine, "well-formed" in fine) == (False, True)


async def test_without_a_sandbox_shell_is_not_checked(world: World, ann: User, own: Path) -> None:
    (own / "a.sh").write_text("if\n")
    with pytest.raises(ToolFailed, match="sandbox"):
        await world.text(ann, "file_syntax_check", path="a.sh")
    sandbox = Sandbox(forced="none")
    world.wired[Sandbox] = sandbox
    with pytest.raises(ToolFailed, match="sandbox"):
        await world.text(ann, "file_syntax_check", path="a.sh")


async def test_facts_of_a_file(world: World, ann: User, own: Path) -> None:
    assert (await world.text(ann, "file_stat", path="notes.md")).startswith("notes.md (14 bytes, 20")
    assert await world.text(ann, "file_stat", path="sub") == "sub/"
    with pytest.raises(NotFound):
        await world.text(ann, "file_stat", path="none")


DOORS = {
    "file_read": lambda path: {"path": path},
    "file_list": lambda path: {"path": path},
    "file_write": lambda path: {"path": path, "text": "mine"},
    "file_diff": lambda path: {"old": "notes.md", "new": path},
    "file_grep": lambda path: {"pattern": ".", "path": path},
    "file_syntax_check": lambda path: {"path": path},
    "file_stat": lambda path: {"path": path},
}


@pytest.mark.parametrize("name", DOORS)
async def test_no_path_leads_outside(world: World, ann: User, own: Path, name: str) -> None:
    before = sorted(str(place) for place in world.homes.root.iterdir())
    for path in TRAVERSALS:
        ctx = world.ctx(ann)
        try:
            text = (await world.run(ctx, name, **DOORS[name](path))).text
        except (CortexError, ValidationError):
            continue
        assert SECRET not in text
        assert "cortex.db" not in text.replace("link.txt", "")
    assert sorted(str(place) for place in world.homes.root.iterdir()) == before
    assert (world.homes.root / "cortex.db").read_text() == SECRET


async def test_another_users_files_are_out_of_reach(world: World, ann: User, ben: User, own: Path) -> None:
    for path in ("notes.md", f"../{ann.id}/files/notes.md", f"../../{ann.id}/files/notes.md", str(own / "notes.md")):
        with pytest.raises(CortexError):
            await world.text(ben, "file_read", path=path)
    note = UndoNote(target="notes.md", before=None, expected="", label="")
    with pytest.raises(CortexError):
        await world.undo(ben, "file", note)
    assert (own / "notes.md").exists()
