"""Packages with entry points for Cortex, as an installer leaves them: files, metadata, and a RECORD of all of it."""

import base64
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.tools.plugins import Plugin


@contextmanager
def package_folder(folder: Path) -> Iterator[Path]:
    """A folder of packages at the head of the path, of which nothing stays imported."""
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__file__", "")).startswith(f"{folder}/"):
            del sys.modules[name]


async def plugin(house: Cortex, name: str) -> Plugin:
    """How the package stands, once what is allowed was loaded."""
    await house.tool_settings.in_force()
    return next(one for one in await house.plugins.list() if one.name == name)


async def allow(house: Cortex, user: User, name: str) -> Plugin:
    """How it stands once this user allowed it as it is."""
    package = (await plugin(house, name)).package
    assert package is not None
    await house.plugins.allow(user, name, package.digest)
    return await plugin(house, name)


def install(folder: Path, name: str, files: dict[str, str], points: dict[str, dict[str, str]], **says: str) -> None:
    """Write the package into this folder of the path. points: by group, dotted modules by name; says: of METADATA."""
    about = {"Metadata-Version": "2.4", "Name": name, "Version": "1.0", **says}
    metadata = f"{name.replace('-', '_')}-{about['Version']}.dist-info"
    groups = "\n".join(
        "\n".join([f"[{group}]", *(f"{k} = {v}" for k, v in ones.items())]) for group, ones in points.items()
    )
    whole = {
        **files,
        f"{metadata}/METADATA": "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in about.items()),
        f"{metadata}/entry_points.txt": groups,
    }
    record = []
    for path, text in whole.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record.append(f"{path},sha256={digest},{len(text.encode())}")
    (folder / metadata / "RECORD").write_text("\n".join([*record, f"{metadata}/RECORD,,"]), encoding="utf-8")
