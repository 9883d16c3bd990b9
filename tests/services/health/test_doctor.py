"""What the doctor says of a set-up that is broken: never that it is well."""

from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.base.trust import unusable
from cortex.services.health.finding import Finding
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
    assert (seen.state, seen.mend) == ("bad", "Run that newer version of Cortex again, or restore a backup.")


def test_only_a_file_of_certificates_is_one(tmp_path: Path) -> None:
    (tmp_path / "own.pem").write_text("hello")
    assert "cannot be read as certificates" in unusable({"SSL_CERT_FILE": str(tmp_path / "own.pem")})
    assert unusable({}) == ""
