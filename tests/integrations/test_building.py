"""A version made a program: packages that are not there come by their digests, and nothing half made counts."""

import asyncio
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from cortex.base import versions
from cortex.base.errors import UserError
from cortex.integrations.process import run
from cortex.integrations.upkeep.building import BuiltVersion, build, record_of, remove_others, running_packages
from tests.patience import PATIENCE_S

VERSION = BuiltVersion(name="v1", label="1.0 (v1)")


def tiny_wheel(folder: Path) -> str:
    """A package that nobody has installed; its digest."""
    path = folder / "cortextiny-1.0-py3-none-any.whl"
    folder.mkdir()
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("cortextiny.py", "GREETING = 'good day'\n")
        about = "cortextiny-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: cortextiny\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "cortextiny.py,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def packed(path: Path, lock: str, **extras: str) -> Path:
    """A version that consists of what a build looks at. `extras`: their locks."""
    files = {"cortex/__init__.py": "", "web/assets.py": "", "requirements/run.txt": lock}
    files |= {f"requirements/{name}.txt": text for name, text in extras.items()}
    with tarfile.open(path, "w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The digest of the only package that pip finds."""
    digest = tiny_wheel(tmp_path / "links")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    return digest


async def test_packages_that_are_missing_are_installed_and_stay_while_they_are_used(tmp_path: Path, links: str) -> None:
    home, said = tmp_path / "home", list[str]()
    tar = packed(tmp_path / "v1.tar", f"cortextiny==1.0 --hash=sha256:{links}\n")
    made = await build(home, VERSION, tar, running_packages(), said.append)
    assert "Installing packages: 1" in said
    asked = [str(versions.python_of(home, "v1")), "-P", "-c", "import cortextiny, cortex; print(cortex.__file__)"]
    told = await run(asked, cwd=tmp_path, timeout_s=PATIENCE_S)
    assert told.out.strip() == str(home / "versions" / "v1" / "code" / "cortex" / "__init__.py")
    remove_others(home, {"v1"})
    assert await asyncio.to_thread(Path(made.packages).is_dir)
    assert await build(home, VERSION, tmp_path / "gone.tar", running_packages(), said.append) == made
    remove_others(home, set())
    assert list((home / "versions").iterdir()) == []


async def test_an_update_keeps_the_extras_that_are_installed_and_brings_no_others(tmp_path: Path, links: str) -> None:
    tiny = f"cortextiny==1.0 --hash=sha256:{links}\n"
    here = "pytest==0.1 --hash=sha256:00\n"  # of which there is another version: so it is installed
    tar = packed(tmp_path / "v1.tar", tiny, ddgs="cortexabsent==1.0 --hash=sha256:00\n")
    await build(tmp_path / "home", VERSION, tar, running_packages(), lambda _: None)
    tar = packed(tmp_path / "v2.tar", tiny, postgres=here, ddgs="cortexabsent==1.0 --hash=sha256:00\n")
    with pytest.raises(UserError, match=r"(?s)could not be installed.*pytest==0\.1"):
        await build(tmp_path / "other", VERSION, tar, running_packages(), lambda _: None)


async def test_a_package_with_another_digest_is_refused_and_nothing_is_left(tmp_path: Path, links: str) -> None:
    home = tmp_path / "home"
    tar = packed(tmp_path / "v1.tar", f"cortextiny==1.0 --hash=sha256:{links[::-1]}\n")
    with pytest.raises(UserError, match="could not be installed"):
        await build(home, VERSION, tar, running_packages(), lambda _: None)
    assert record_of(home, "v1") is None
    assert not list((home / "versions").glob("*/complete"))


async def test_what_is_installed_already_is_used_again(tmp_path: Path) -> None:
    tar = packed(tmp_path / "v1.tar", "\n")
    made = await build(tmp_path / "home", VERSION, tar, running_packages(), lambda _: None)
    assert made.packages == str(running_packages())


@pytest.mark.parametrize("content", [b"", b"no tar"], ids=["empty", "text"])
async def test_a_file_that_cannot_be_unpacked_leaves_nothing(tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "v1.tar"
    broken.write_bytes(content)
    with pytest.raises(UserError):
        await build(tmp_path / "home", VERSION, broken, running_packages(), lambda _: None)
    assert list((tmp_path / "home" / "versions").iterdir()) == []
