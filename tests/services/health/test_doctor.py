"""What the doctor says of a set-up that is broken: never that it is well."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.base.trust import unusable
from cortex.services.health.finding import PACKAGE, Finding, program_files
from tests.living_house import LivingHouse, living_house


async def found(house: LivingHouse) -> dict[str, Finding]:
    return {one.name: one for one in await house.cortex.doctor.examine()}


async def test_an_empty_key_and_authorities_that_are_none_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    async with living_house(tmp_path / "home") as house:
        house.cortex.settings.key_file.write_text("")
        seen = await found(house)
    assert (seen["secret key"].state, "is empty" in seen["secret key"].text) == ("bad", True)
    assert (seen["certificates"].state, "none.pem" in seen["certificates"].text) == ("bad", True)


async def test_tables_of_a_newer_version_are_not_to_be_migrated(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        async with house.cortex.runtime.db.session_scope() as session:
            await session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        seen = (await found(house))["database"]
    assert (seen.state, "newer version" in seen.mend) == ("bad", True)


FILES = (
    "selection/model/weights",
    "selection/index/shipped_index",
    "selection/words/meanings",
    "selection/model/lacks_tool",
    "base/o200k",
)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garble(path: Path) -> None:
    path.write_bytes(b"\xff" * 64 + path.read_bytes()[64:])


@pytest.mark.parametrize("harm", [Path.unlink, empty, cut, garble], ids=["missing", "empty", "cut", "garbled"])
def test_files_of_the_program_that_are_damaged_are_named(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / f"{name}.bin", tmp_path / f"{name}.bin")
    assert program_files(tmp_path).state == "good"
    for name in FILES:
        path = tmp_path / f"{name}.bin"
        harm(path)
        seen = program_files(tmp_path)
        assert (seen.state, str(path) in seen.text) == ("bad", True)
        assert seen.mend.startswith("Install this")
        shutil.copy(PACKAGE / f"{name}.bin", path)


def test_what_a_damaged_file_of_the_program_means_is_said(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PACKAGE / f"{name}.bin", tmp_path / f"{name}.bin")
    (tmp_path / "selection/model/lacks_tool.bin").unlink()
    seen = program_files(tmp_path).text
    assert ("second try" in seen, "No message" in seen) == (True, False)
    (tmp_path / "selection/model/weights.bin").unlink()
    assert "No message" in program_files(tmp_path).text


async def test_the_files_of_the_program_are_among_what_is_looked_at(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        assert (await found(house))["program"].state == "good"


def test_only_a_file_of_certificates_is_one(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text("hello")
    assert "as certificates" in unusable({"SSL_CERT_FILE": str(tmp_path / "own.pem")})
    assert unusable({}) == ""
