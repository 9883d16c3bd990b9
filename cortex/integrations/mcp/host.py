"""Programs as they lie on this machine: where one is, what starts it, and which folders it cannot do without.

The sandbox shows a program `/usr` and what its card grants. Most are elsewhere: in an environment of Python, below nvm
or pyenv, in somebody's home. Reads the disk: run it off the event loop; by `os.path` where a text of any kind is looked
for, which says no where `Path` raises: for a name that is too long, in a folder that is closed to us.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")))
TOO_WIDE = tuple(
    map(Path, ("/home", "/root", "/etc", "/opt", "/var", "/tmp", "/srv", "/mnt", "/media", "/boot", "/var/lib"))  # noqa: S108 - never given
)
PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".password-store", ".pki", ".mozilla"),
    *(".thunderbird", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".local", ".local/share", ".cache"),
    *(".local/share/keyrings", ".bash_history", ".bashrc", ".profile"),
)
OPEN = (".local", ".local/share", ".cache")  # not as a whole; what lies in them may be given
PLACES = (
    *("~/.local/bin", "~/bin", "~/.npm-global/bin", "~/.bun/bin", "~/.deno/bin", "~/.cargo/bin", "~/go/bin"),
    "/opt/homebrew/bin",
)
GLOBS = (
    *("~/.nvm/versions/node/*/bin", "~/.pyenv/versions/*/bin", "~/.volta/tools/image/*/*/bin"),
    *("~/.asdf/installs/*/*/bin", "~/.local/share/fnm/node-versions/*/installation/bin", "/opt/*/bin"),
)
HEAD_BYTES, TEXT_BYTES = 4_096, 200_000
HOPS_MOST = 4
_EXEC = re.compile(rb"^'''exec' [\"']?([^\"'\n]+?)[\"']? [\"']?\$0", re.MULTILINE)
_SETTINGS = re.compile(r"/etc/[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?")
_PATHS = re.compile(r"'(/[^'\n]{2,200})'")


class Machine(Struct, frozen=True, kw_only=True):
    """`home`: of the person whose account runs Cortex. `path`: where its environment looks for programs.

    closed: folders that no server gets.
    """

    home: Path
    path: str
    closed: Sequence[Path]

    def find(self, program: str) -> Path | None:
        """Where a program is; None for one that is not on this machine."""
        if "/" in program:
            return Path(program) if program.startswith("/") and _is_program(Path(program)) else None
        for folder in self._folders():
            if _is_program(folder / program):
                return _behind_shim(folder / program)
        return None

    def _folders(self) -> Iterator[Path]:
        yield from (Path(one) for one in self.path.split(os.pathsep) if one.startswith("/"))
        yield from map(Path, ("/usr/local/bin", "/usr/bin", "/bin"))
        yield from (self._whole(one) for one in PLACES)
        for pattern in GLOBS:
            whole = self._whole(pattern)
            yield from sorted(Path("/").glob(str(whole.relative_to("/"))), key=_versions, reverse=True)
        yield Path("/snap/bin")

    def _whole(self, text: str) -> Path:
        return self.home / text[2:] if text.startswith("~/") else Path(text)

    def may_give(self, place: Path) -> bool:
        """Tell whether a server may ever get this folder or file, by its name and by where that leads."""
        return all(self._may_give(one) for one in (place, _resolved(place)))

    def _may_give(self, place: Path) -> bool:
        private = [self.home / one for one in PRIVATE]
        if place in TOO_WIDE or place in private or self.home.is_relative_to(place) or len(place.parts) < 2:
            return False
        if place.is_relative_to("/etc") and (place.is_relative_to("/etc/ssh") or not _is_for_all(place)):
            return False
        if any(place.is_relative_to(self.home / one) for one in PRIVATE if one not in OPEN):
            return False
        return not any(
            one == place or place.is_relative_to(one) or one.is_relative_to(place)
            for closed in self.closed
            for one in (closed, _resolved(closed))
        )


class Launch(Struct, frozen=True, kw_only=True):
    """The start of a program in the sandbox. `argv`: by names that hold there. `needs`: what it has to see.

    files: what must be seen at the least. package: the folder that says what it is made of, if there is one.
    """

    argv: tuple[str, ...]
    needs: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    package: Path | None = None


def launch_of(program: Path, machine: Machine, hops: int = HOPS_MOST) -> Launch:
    """Return how this program is started: a script by what its first line names, the rest as it is."""
    target = _resolved(program)
    is_known = in_system(program) and in_system(target)
    head = _head(target, HEAD_BYTES)
    if is_known and not _foreign_interpreter(head, machine):
        return Launch(argv=(str(program),), needs=_settings(target, head, machine))
    if hops and head.startswith(b"#!"):
        return _script(target, head, machine, hops)
    if (root := _environment(program)) is not None:
        return Launch(argv=(str(program),), needs=_of_python(root, target), files=(program, target), package=root)
    if re.fullmatch(r"python[\d.]*", target.name):
        return Launch(argv=(str(program),), needs=(target.parent.parent,), files=(program, target))
    if target.name == "node" and target.parent.name == "bin":
        return Launch(argv=(str(target),), needs=(target.parent.parent,), files=(target,))
    return Launch(argv=(str(target),), needs=(target,), files=(target,))


def script_needs(script: Path, machine: Machine) -> Launch:
    """Return what a script needs that is given to its interpreter: what lies with it, as far as that may be given."""
    target = _resolved(script)
    root = _project(target, machine)
    return Launch(
        argv=(str(script),),
        needs=tuple(dict.fromkeys((root, *_linked(root, script, target)))),
        files=(script,),
        package=root,
    )


def text_of(file: Path, most: int = TEXT_BYTES) -> str:
    """The beginning of a file as text; "" for one that cannot be read."""
    return _head(file, most).decode("utf-8", "replace")


def in_system(place: Path) -> bool:
    """Tell whether every sandbox shows it."""
    return any(place.is_relative_to(one) for one in SYSTEM)


def _script(target: Path, head: bytes, machine: Machine, hops: int) -> Launch:
    interpreter, *options = _interpreter(head)
    found = machine.find(interpreter)
    if found is None:
        return Launch(argv=(str(target),), needs=(target,), files=(target,))
    below = launch_of(found, machine, hops - 1)
    own = script_needs(target, machine)
    if (root := _environment(found)) is not None and target.is_relative_to(root):
        own = Launch(argv=own.argv, needs=(), files=(target,), package=root)
    return Launch(
        argv=(*below.argv, *options, str(target)),
        needs=tuple(dict.fromkeys((*below.needs, *(one for one in own.needs if not in_system(one))))),
        files=(*below.files, *(one for one in own.files if not in_system(one))),
        package=own.package,
    )


def _interpreter(head: bytes) -> list[str]:
    """The program of the first line, its own name where `env` looks for it, with its options."""
    if (found := _EXEC.search(head)) is not None:  # a path too long for a first line, by pip
        return [found[1].decode("utf-8", "replace")]
    words = head.partition(b"\n")[0][2:].decode("utf-8", "replace").split()
    if words and words[0].endswith("/env"):
        words = [one for one in words[1:] if one != "-S" and "=" not in one]
    return words or ["/bin/sh"]


def _foreign_interpreter(head: bytes, machine: Machine) -> bool:
    """Tell whether a script of the system is started by what is outside of it."""
    if not head.startswith(b"#!"):
        return False
    found = machine.find(_interpreter(head)[0])
    return found is not None and not in_system(_resolved(found))


def _environment(program: Path) -> Path | None:
    root = program.parent.parent
    return root if os.path.isfile(root / "pyvenv.cfg") else None


def _of_python(root: Path, target: Path) -> tuple[Path, ...]:
    """An environment, the Python that it was made of, and the sources that are installed in place."""
    found = [root]
    if not in_system(target):
        found.append(target.parent.parent)
    for packages in sorted(root.glob("lib/python3*/site-packages")):
        for file in (*sorted(packages.glob("*.pth")), *sorted(packages.glob("__editable__*.py"))):
            text = text_of(file)
            lines = text.splitlines() if file.suffix == ".pth" else _PATHS.findall(text)
            found += [Path(one) for one in lines if one.startswith("/") and os.path.isdir(one)]
    return tuple(dict.fromkeys(one for one in found if not in_system(one)))


def _project(script: Path, machine: Machine) -> Path:
    """Return what a script belongs to: its modules or package, else its folder; itself where that is too wide."""
    outermost = [one for one in script.parents if one.name == "node_modules"]
    packaged = [one for one in script.parents if os.path.isfile(one / "package.json") and not outermost]
    for place in (*outermost[-1:], *packaged[:1], script.parent):
        if machine.may_give(place):
            return place
    return script


def _linked(root: Path, script: Path, target: Path) -> tuple[Path, ...]:
    """The link by which it was named, where that lies elsewhere."""
    return () if script == target or script.is_relative_to(root) else (script,)


def _settings(target: Path, head: bytes, machine: Machine) -> tuple[Path, ...]:
    """Settings in /etc that a start script of the system names, and the fonts of what draws."""
    if not head.startswith(b"#!"):
        return ()
    named = [Path(one) for one in dict.fromkeys(_SETTINGS.findall(text_of(target)))]
    found = [one for one in named if os.path.exists(one) and one.parent == Path("/etc") and machine.may_give(one)]
    is_browser = bool(re.search("chrom|firefox", target.name))
    return (*found, *([Path("/etc/fonts")] if is_browser and os.path.isdir("/etc/fonts") else ()))


def _behind_shim(program: Path) -> Path:
    """The program that a version manager's stand-in starts."""
    root = program.parent.parent
    if program.parent.name != "shims":
        return program
    for version in text_of(root / "version", 200).split():
        if _is_program(root / "versions" / version / "bin" / program.name):
            return root / "versions" / version / "bin" / program.name
    found = [*root.glob(f"versions/*/bin/{program.name}"), *root.glob(f"installs/*/*/bin/{program.name}")]
    return max(found, key=_versions, default=program)


def _versions(place: Path) -> list[tuple[int, ...]]:
    return [tuple(map(int, re.findall(r"\d+", part))) for part in place.parts]


def _is_program(place: Path) -> bool:
    return os.path.isfile(place) and os.access(place, os.X_OK)


def _resolved(place: Path) -> Path:
    try:
        return place.resolve()
    except (OSError, RuntimeError, ValueError):
        return place


def _is_for_all(place: Path) -> bool:
    """Tell whether everybody on this machine may read it: what holds keys is not so."""
    try:
        return bool(place.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def _head(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(most)
    except OSError:
        return b""
