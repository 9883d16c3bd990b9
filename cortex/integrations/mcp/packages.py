"""Packages of npm and PyPI that a line would fetch at each start: installed once, pinned, without their scripts.

`npx` and `uvx` lines run what a registry has at that moment, with the network. Here the package and all it needs are
fetched after an admin's yes, by versions and hashes in a lock file, and no program of theirs runs meanwhile.
"""

import asyncio
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cortex.base import disk_faults, private
from cortex.base.errors import DiskFull, ToolFailed, UserError
from cortex.base.hidden import show_hidden
from cortex.base.record import as_dict
from cortex.integrations.mcp.host import Machine, launch_of
from cortex.integrations.process import run

FULL = "The package was not installed: the disk is full. Make room on it, then try again."
INSTALL_S = 300.0
MANIFEST = "installed.json"
LOCKS = {"npm": "package-lock.json", "pypi": "requirements.lock"}
PASSED = ("HOME", "PATH", "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
PASSED_BEGINNINGS = ("PIP_", "NPM_CONFIG_", "npm_config_", "UV_INDEX")
DOCKER = (
    "Containers are not started from here: docker gives what it starts the rights of root, outside the sandbox. Use "
    "the program itself (often an npx or uvx line of the same maker), or start the container yourself and enter the "
    "address at which it answers."
)
_NPM = re.compile(  # of the registry: no option of npm, no path, archive or address
    r"(?!.*\.(?:tgz|tar|tar\.gz)\Z)(?:@[a-z0-9][a-z0-9~._-]*/)?[a-z0-9][a-z0-9~._-]*"
    r"(?:@[A-Za-z0-9^~<>=*][A-Za-z0-9.^~<>=*+-]*)?",
)
_PROGRAM = re.compile(r"\w[\w.+-]*")
_PYPI = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9,._-]+\])?(?:(?:==|>=|<=|~=|!=|<|>|@)[A-Za-z0-9.*+!-]+)?")
_WITH_VALUE = {"--python", "-p", "--with", "--index", "--index-url", "--registry", "--cache", "--directory"}


class McpPackage(Struct, frozen=True, kw_only=True):
    """A package by its line. `spec`: with the version, where it says one. program: the one to start, "" = its own."""

    kind: Literal["npm", "pypi"]
    spec: str
    program: str = ""
    extra: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what was confirmed: another line is another package."""
        return " ".join((self.kind, self.spec, self.program, *self.extra))


class Installed(Struct, frozen=True, kw_only=True):
    """A package that is here. `argv`: what starts it; `version`: of the package itself."""

    key: str
    version: str
    argv: tuple[str, ...]


def package_of(argv: Sequence[str]) -> McpPackage | None:
    """The package that a line fetches and runs; None for other lines. UserError for one that cannot be read."""
    name, rest = Path(argv[0]).name.removesuffix(".cmd").removesuffix(".exe"), list(argv[1:])
    match [name, *rest[:1]]:
        case ["npx" | "bunx" | "pnpx", *_]:
            return _npm(rest)
        case ["pnpm" | "yarn", "dlx"] | ["bun", "x"] | ["npm", "exec" | "x"]:
            return _npm(rest[1:])
        case ["uvx", *_]:
            return _pypi(rest)
        case ["uv", "tool"] if rest[1:2] == ["run"]:
            return _pypi(rest[2:])
        case ["pipx", "run"]:
            return _pypi(rest[1:])
        case _:
            return None


def _npm(rest: list[str]) -> McpPackage:
    named, _, words = _options(rest, packages=("-p", "--package"), beside=())
    if not named and not words:
        raise UserError("The line names no package.")
    spec, program, arguments = (named[0], words[0] if words else "", words[1:]) if named else (words[0], "", words[1:])
    for one in (spec, *named[1:]):
        if not _NPM.fullmatch(one):
            raise UserError(f"{show_hidden(one)} is no name of an npm package; others are not fetched here.")
    return McpPackage(kind="npm", spec=spec, program=program, extra=tuple(named[1:]), arguments=tuple(arguments))


def _pypi(rest: list[str]) -> McpPackage:
    named, extra, words = _options(rest, packages=("--from", "--spec"), beside=("--with",))
    if not words:
        raise UserError("The line names no package.")
    spec, program = (named[0], words[0]) if named else (words[0], "")
    if not all(_PYPI.fullmatch(one) for one in (spec, *extra)):
        raise UserError(f"{show_hidden(spec)} is no name of a package on PyPI; others are not fetched here.")
    if named and not _PROGRAM.fullmatch(program):
        raise UserError(f"{show_hidden(program)} is no name of a program.")
    tidy = re.sub(r"@latest$", "", spec)
    return McpPackage(
        kind="pypi",
        spec=re.sub(r"@(?=\d)", "==", tidy),
        program=program or re.split(r"[\[=<>~@]", tidy)[0],
        extra=tuple(extra),
        arguments=tuple(words[1:]),
    )


def _options(
    rest: list[str], packages: tuple[str, ...], beside: tuple[str, ...]
) -> tuple[list[str], list[str], list[str]]:
    """The packages that options name, those beside, and what follows the options."""
    named: list[str] = []
    extra: list[str] = []
    while rest and rest[0].startswith("-") and rest[0] != "--":
        option, sign, value = rest.pop(0).partition("=")
        takes = option in (*packages, *beside) or option in _WITH_VALUE
        if takes and not sign:
            value = rest.pop(0) if rest else ""
        if option in packages:
            named.append(value)
        elif option in beside:
            extra.append(value)
    return named, extra, rest[1:] if rest[:1] == ["--"] else rest


def installed_in(folder: Path, package: McpPackage) -> Installed | None:
    """Return what is installed of this very package; None for nothing."""
    try:
        given = json.loads((folder / MANIFEST).read_bytes())
        found = Installed(key=given["key"], version=given["version"], argv=tuple(given["argv"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.key == package.key and Path(found.argv[-1]).exists() else None


def installer_of(package: McpPackage, machine: Machine) -> Path:
    """The program that runs the package, with which it is installed; UserError where there is none."""
    if package.kind == "npm":
        found = machine.find("node")
        if found is None or machine.find("npm") is None:
            raise UserError("npm is not on this machine. Install Node.js, then try again.")
        return found
    named = [machine.find(one) for one in ("python3", "python3.13", "python3.12", "python3.11")]
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    for one in (base, *named):
        if one is not None and one.exists() and machine.may_give(one.resolve()):
            return one
    raise UserError("There is no Python on this machine that may be used. Install python3 with venv and pip.")


async def install(package: McpPackage, folder: Path, machine: Machine, environment: Mapping[str, str]) -> Installed:
    """Fetch it into `folder`; it counts once its manifest is there. UserError says what failed.

    environment: Cortex's own, of which the installer gets where its registry is and how it is reached.
    """
    kept = {
        name: value
        for name, value in environment.items()
        if name.upper() in PASSED or name.startswith(PASSED_BEGINNINGS)
    }
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    await asyncio.to_thread(private.make_folder, folder.parent)
    await asyncio.to_thread(private.make_folder, folder)
    is_done = False
    try:
        made = await (_install_npm if package.kind == "npm" else _install_pypi)(package, folder, machine, kept)
        await asyncio.to_thread(_keep, folder, made)
        is_done = True
    except (ToolFailed, OSError, KeyError, ValueError) as error:
        if disk_faults.is_full(error):
            raise DiskFull(FULL) from error
        raise UserError(f"The package could not be installed: {show_hidden(str(error))[:400]}") from error
    finally:
        if not is_done:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
    return made


def _keep(folder: Path, made: Installed) -> None:
    private.write_beside(folder / f"{MANIFEST}.new", json.dumps(as_dict(made)).encode())
    (folder / f"{MANIFEST}.new").replace(folder / MANIFEST)


async def _install_npm(package: McpPackage, folder: Path, machine: Machine, env: Mapping[str, str]) -> Installed:
    npm, node = machine.find("npm"), installer_of(package, machine)
    (folder / "package.json").write_text('{"private": true}')
    path = f"{node.parent}:{env.get('PATH', '')}"
    order = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact", "--omit=dev", "--no-bin-links"]
    await _run_installer([str(npm), *order, "--", package.spec, *package.extra], folder, {**env, "PATH": path})
    version, script = await asyncio.to_thread(_npm_program, package, folder)
    return Installed(key=package.key, version=version, argv=(*launch_of(node, machine).argv, str(script)))


def _npm_program(package: McpPackage, folder: Path) -> tuple[str, Path]:
    """The version that came, and the file that starts it."""
    name = re.sub(r"(?<=.)@.*$", "", package.spec)
    root = folder / "node_modules" / name
    facts = json.loads((root / "package.json").read_bytes())
    given = facts.get("bin") or {}
    programs = {name.rpartition("/")[2]: given} if isinstance(given, str) else dict(given)
    wanted = package.program or name.rpartition("/")[2]
    chosen = programs.get(wanted) or (next(iter(programs.values())) if len(set(programs.values())) == 1 else None)
    if chosen is None:
        raise UserError(f"{name} has no program {wanted!r}; it has: {', '.join(map(str, programs)) or 'none'}.")
    script = (root / str(chosen)).resolve()
    if not script.is_relative_to(folder.resolve()) or not script.is_file():
        raise UserError(f"The program of {name} is not where the package says.")
    return str(facts.get("version", "")), script


async def _install_pypi(package: McpPackage, folder: Path, machine: Machine, env: Mapping[str, str]) -> Installed:
    python = installer_of(package, machine)
    await _run_installer([str(python), "-m", "venv", "--without-pip", str(folder / "env")], folder, env)
    own = str(folder / "env" / "bin" / "python")
    pip = [str(await _with_pip(python, machine, folder, env)), "-m", "pip", "--python", own]
    only = ["--only-binary", ":all:", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    report = folder / "report.json"
    await _run_installer(
        [*pip, "install", "--dry-run", "-q", *only, "--report", str(report), package.spec, *package.extra], folder, env
    )
    found = json.loads(report.read_bytes())["install"]
    lock = folder / LOCKS["pypi"]
    lock.write_text("".join(map(_pinned, found)))
    await _run_installer([*pip, "install", "-q", "--no-deps", "--require-hashes", *only, "-r", str(lock)], folder, env)
    script = folder / "env" / "bin" / package.program
    name = re.split(r"[\[=<>~]", package.spec)[0]
    if not script.is_file():
        raise UserError(f"{name} has no program {package.program!r}.")
    version = next((one["metadata"]["version"] for one in found if _plain(one["metadata"]["name"]) == _plain(name)), "")
    return Installed(key=package.key, version=version, argv=(own, str(script)))


async def _with_pip(python: Path, machine: Machine, folder: Path, env: Mapping[str, str]) -> Path:
    for one in (python, Path(sys.executable), machine.find("python3")):
        if one is not None:
            ran = await run([str(one), "-m", "pip", "--version"], cwd=folder, timeout_s=60, env=env)
            if ran.code == 0:
                return one
    raise UserError("pip is not on this machine. Install python3-pip, then try again.")


def _pinned(found: Mapping[str, object]) -> str:
    """A line of the lock file for what pip would install."""
    facts, source = found["metadata"], found["download_info"]
    assert isinstance(facts, dict)  # noqa: S101 - pip's installation report, version 1
    assert isinstance(source, dict)  # noqa: S101
    hashes = (source.get("archive_info") or {}).get("hashes") or {}
    if "sha256" not in hashes:
        raise UserError(f"{facts['name']} comes without a hash, so it was not installed.")
    return f"{facts['name']}=={facts['version']} --hash=sha256:{hashes['sha256']}\n"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


async def _run_installer(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
    ran = await run(argv, cwd=folder, timeout_s=INSTALL_S, env=env)
    if ran.killed or ran.code:
        said = show_hidden(" ".join((ran.killed or ran.err or ran.out).split()))[-400:]
        if re.search(r"nospc|ENOSPC|EDQUOT|No space left", said):
            raise DiskFull(FULL)
        raise UserError(f"The package could not be installed: {said or f'exit code {ran.code}'}.")
