"""A template is compiled once: the next start finds it, unless its text changed; whatever stands there, it renders."""

from pathlib import Path

import pytest

from web.render import Renderer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "a.html").write_text("{{ 1 + 1 }} lamps")
    return tmp_path


def rendered(place: Path) -> str:
    return Renderer(place / "templates", place).env.get_template("a.html").render()


def kept(place: Path) -> list[Path]:
    return sorted((place / "__pycache__").glob("*.jinja"))


def test_the_next_start_compiles_nothing_again(place: Path) -> None:
    assert rendered(place) == "2 lamps"
    [file] = kept(place)
    told = file.read_bytes()
    file.write_bytes(told.replace(b" lamps", b" LAMPS"))  # what is kept is what is run
    assert told != file.read_bytes()
    assert rendered(place) == "2 LAMPS"


def test_a_changed_template_is_compiled_anew_in_the_same_place(place: Path) -> None:
    rendered(place)
    (place / "templates" / "a.html").write_text("{{ 1 + 2 }} chairs")
    assert rendered(place) == "3 chairs"
    assert len(kept(place)) == 1


@pytest.mark.parametrize("left", [0, 1, 20, -30], ids=lambda left: f"cut to {left}")
def test_a_damaged_file_is_made_anew(place: Path, left: int) -> None:
    rendered(place)
    [file] = kept(place)
    whole = file.read_bytes()
    file.write_bytes(whole[:left])
    assert rendered(place) == "2 lamps"
    assert file.read_bytes() == whole


def test_where_nothing_can_be_written_the_page_is_shown_all_the_same(place: Path) -> None:
    (place / "__pycache__").write_text("a file where the folder should be")
    assert rendered(place) == "2 lamps"
