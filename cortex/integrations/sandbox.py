"""Runs a program shut in: no network, no environment, /usr read-only, one folder to work in, hard limits.

A ladder: bubblewrap, else Landlock (`landlock.py`), else nothing, and then what needs it is absent. Each rung has a
seccomp filter (`seccomp.py`) and a quota of disk, counted while the program runs (`quota.py`).
Callers: the shell, git and syntax-check tools. It decides no permission.
"""

import asyncio
import os
import resource
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import private
from cortex.base.errors import ToolFailed
from cortex.integrations import cgroups, landlock, seccomp
from cortex.integrations.ladder import Level, Probe, climb
from cortex.integrations.process import ProcessResult, run, running
from cortex.integrations.quota import MB, Quota, Quotas, watch_tree
from cortex.integrations.scratch import scratch_folder

LEVELS: Sequence[Level] = ("bubblewrap", "landlock")  # best first
WORK = "/cortex-files"  # a name that no readable folder stands below
NICENESS = 10
OPEN_FILES = 256
GROWTH = Quota(most_bytes=500 * MB, most_files=20_000)
SERVICE_WATCH_S = 2.0
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
)
SYSTEM_FILES = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/mime.types")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own, empty one
    "TMPDIR": "/tmp",  # noqa: S108 - as above
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "USER": "cortex",
    "GIT_CONFIG_NOSYSTEM": "1",  # /etc is not there; under Landlock git fails on it
}


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of a program. `memory_bytes` holds for the whole tree, `address_bytes` for one process.

    `growth`: what it may add to its folder.
    """

    timeout_s: float = 30.0
    cpu_s: int = 30
    memory_bytes: int = 512 * MB
    address_bytes: int = 2_000 * MB
    processes: int = 64
    file_bytes: int = 64 * MB
    output_bytes: int = 65_536
    temporary_bytes: int = 64 * MB
    growth: Quota = GROWTH


class _Job(Struct, frozen=True, kw_only=True):
    """One run, all of it."""

    argv: Sequence[str]
    workspace: Path
    limits: Limits = Limits()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    is_writable: bool = True
    folder: str = "."
    umask: int = -1
    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()
    has_network: bool = False
    total: Quota | None = None


class RunningService(Struct, frozen=True, kw_only=True):
    """A program that goes on running. `excess`: waits until it takes more than it may, and says so in words."""

    process: asyncio.subprocess.Process
    excess: Callable[[], Awaitable[str]]


class Walls(TypedDict, total=False):
    """The surroundings of a program. `env`: besides the usual names. `is_writable`: whether its workspace is.

    readable: what it may read besides the system and its workspace, at its own path.
    """

    limits: Limits
    env: Mapping[str, str]
    is_writable: bool
    readable: Sequence[Path]


class RunWalls(Walls, total=False):
    """The surroundings of one run: its input, and the folder of its workspace that it begins in."""

    stdin: bytes
    folder: str


class ServiceWalls(Walls, total=False):
    """The surroundings of a service: folders that it may write to, at their own paths; the machine's network."""

    writable: Sequence[Path]
    has_network: bool


PROBE_JOB = _Job(argv=("/bin/sh", "-c", "echo ready"), workspace=Path("/usr"), is_writable=False)


class Sandbox:
    """The one way to run somebody else's program. `forced` pins a level, `bubblewrap` is its program ("" = none).

    `home`: what a program makes below it is its owner's alone; elsewhere it is as the umask of Cortex's start says.
    `total`: what a folder below it, a person's workspace, may hold in all.
    """

    def __init__(
        self,
        *,
        forced: Level | None = None,
        bubblewrap: str | None = None,
        home: Path | None = None,
        total: Quota | None = None,
    ) -> None:
        self._home = home
        self._total = total
        self._forced = forced
        self._probe: Probe | None = None
        self._bwrap = (shutil.which("bwrap") or "") if bubblewrap is None else bubblewrap

    async def probe(self) -> Probe:
        """The best level that works here, tried once; and again where the machine was only too busy to tell."""
        if self._probe is None or not self._probe.is_final:
            levels = [level for level in LEVELS if self._forced in (None, level)]
            self._probe = await climb(levels, self._bwrap, partial(self._run, job=PROBE_JOB))
        return self._probe

    async def run(self, argv: Sequence[str], *, workspace: Path, **walls: Unpack[RunWalls]) -> ProcessResult:
        """Run `argv` in `workspace`, or a folder of it; ToolFailed when this machine has no sandbox at all."""
        probe = await self.probe()
        if probe.level == "none":
            raise ToolFailed(f"There is no sandbox on this machine, so nothing was run. {probe.reason}")
        job = _Job(argv=argv, workspace=workspace, **walls)
        if self._home is None or not workspace.is_relative_to(self._home):
            return await self._run(probe.level, job)
        try:
            return await self._run(probe.level, replace(job, umask=private.OTHERS, total=self._total))
        finally:  # a program may also say what others may do: chmod, cp -p, tar
            if job.is_writable:
                await asyncio.to_thread(private.look, workspace, is_mending=True)

    @asynccontextmanager
    async def service(
        self, argv: Sequence[str], *, workspace: Path, line_bytes: int, **walls: Unpack[ServiceWalls]
    ) -> AsyncIterator[RunningService]:
        """Run `argv` in `workspace` while the block lasts, to speak with it by its pipes; ToolFailed as in `run`.

        line_bytes: of its output; a longer line cannot be read.
        """
        level = (await self.probe()).level
        if level == "none":
            raise ToolFailed(f"There is no sandbox on this machine, so nothing was run. {(await self.probe()).reason}")
        job = _Job(argv=argv, workspace=workspace, umask=private.OTHERS, **walls)
        if job.has_network and level != "bubblewrap":
            raise ToolFailed("Only bubblewrap can give a program the network, and it does not work on this machine.")
        async with AsyncExitStack() as around:
            temporary = await around.enter_async_context(scratch_folder())
            command: list[str] = _landlock_command(job, temporary)
            handles: tuple[int, ...] = ()
            if level == "bubblewrap":
                command, handles = await around.enter_async_context(self._bubblewrap_command(job))
            process = await around.enter_async_context(
                running(command, cwd=workspace, line_bytes=line_bytes, umask=job.umask, handles=handles)
            )
            yield RunningService(process=process, excess=partial(_service_excess, process.pid, job, temporary))

    async def _run(self, level: Level, job: _Job) -> ProcessResult:
        return await (self._in_bubblewrap(job) if level == "bubblewrap" else _in_landlock(job))

    async def _in_bubblewrap(self, job: _Job) -> ProcessResult:
        """The limits are laid on inside, by a shell of ours ahead of the command; bubblewrap itself needs none."""
        async with self._bubblewrap_command(job) as (command, handles):
            return await _run_watched(command, job, handles=handles)

    @asynccontextmanager
    async def _bubblewrap_command(self, job: _Job) -> AsyncIterator[tuple[list[str], tuple[int, ...]]]:
        """The command line of bubblewrap, and the descriptors that it inherits."""
        processes, memory_bytes = job.limits.processes, job.limits.memory_bytes
        with _as_file(seccomp.compiled(is_landlock=False)) as calls:
            # Twice as much, so that the watch comes first and says why.
            async with cgroups.group_of(2 * processes, 2 * memory_bytes) as joined:
                yield [*joined, self._bwrap, "--seccomp", str(calls), *_bubble(job)], (calls,)


def _bubble(job: _Job) -> list[str]:
    """The bubblewrap command line: new namespaces, own /tmp and /dev with a size, nothing of /etc, no capability."""
    made = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"]
    made += ["--new-session", "--cap-drop", "ALL", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox"]
    made += ["--share-net"] if job.has_network else []
    made += ["--clearenv"]
    for name, value in {**ENVIRONMENT, **job.env}.items():
        made += ["--setenv", name, value]
    made += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        place = Path("/") / name
        if place.is_symlink():
            made += ["--symlink", os.readlink(place), str(place)]
        elif place.is_dir():
            made += ["--ro-bind", str(place), str(place)]
    for name in (*SYSTEM_FILES, *(NETWORK_FILES if job.has_network else ())):
        made += ["--ro-bind-try", name, name]
    shared = str(min(job.limits.temporary_bytes, 16 * MB))
    made += ["--proc", "/proc", "--dev", "/dev", "--size", shared, "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    made += ["--size", str(job.limits.temporary_bytes), "--tmpfs", "/tmp"]  # noqa: S108 - inside
    for readable in map(str, job.readable):
        made += ["--ro-bind", readable, readable]
    for writable in map(str, job.writable):
        made += ["--bind", writable, writable]
    made += ["--bind" if job.is_writable else "--ro-bind", str(job.workspace), WORK]
    made += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", os.path.normpath(f"{WORK}/{job.folder}")]
    return [*made, "--", "/bin/sh", "-c", f'{_ulimits(job.limits)}; exec nice -n {NICENESS} "$@"', "sh", *job.argv]


def _ulimits(limits: Limits) -> str:
    """The limits as a POSIX shell lays them on: blocks of 512 bytes, memory in KiB; one that fails ends the run."""
    values = (("c", 0), ("t", limits.cpu_s), ("f", limits.file_bytes // 512), ("n", OPEN_FILES))
    made = [f"ulimit -{sign} {value}" for sign, value in (*values, ("v", limits.address_bytes // 1024))]
    count = f"{{ ulimit -u {limits.processes} || ulimit -p {limits.processes}; }} 2>/dev/null"  # bash, else dash
    return "set -e; " + "; ".join([*made, count])


async def _in_landlock(job: _Job) -> ProcessResult:
    """The launcher lays limits and walls on itself; we give it a temporary folder and count its tree."""
    async with scratch_folder() as temporary:
        return await _run_watched(_landlock_command(job, temporary), job, temporary=temporary)


def _landlock_command(job: _Job, temporary: Path) -> list[str]:
    order = landlock.Order(
        argv=tuple(job.argv),
        workspace=str(job.workspace),
        folder=str(job.workspace / job.folder),
        temporary=str(temporary),
        is_writable=job.is_writable,
        processes=job.limits.processes,
        limits=_limits(job.limits),
        readable=tuple(map(str, job.readable)),
        writable=tuple(map(str, job.writable)),
        filter=seccomp.compiled(is_landlock=True).hex(),
        env={**ENVIRONMENT, **job.env},
    )
    return [sys.executable, "-I", "-S", landlock.__file__, order.to_text()]


def _limits(limits: Limits) -> dict[int, int]:
    """Per-process limits by their number in `resource`."""
    return {
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_AS: limits.address_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }


@contextmanager
def _as_file(data: bytes) -> Iterator[int]:
    """A descriptor from which a program that inherits it reads the bytes."""
    handle = os.memfd_create("cortex")
    try:
        os.write(handle, data)
        os.lseek(handle, 0, os.SEEK_SET)
        yield handle
    finally:
        os.close(handle)


async def _run_watched(
    argv: Sequence[str], job: _Job, *, handles: Sequence[int] = (), temporary: Path | None = None
) -> ProcessResult:
    """Run a launcher under the job's limits of time, output, tree and disk; `temporary`: a folder on a real disk."""
    quotas = Quotas()
    if job.is_writable:
        await quotas.add(job.workspace, growth=job.limits.growth, total=job.total)
    if temporary is not None:
        await quotas.add(temporary, growth=replace(job.limits.growth, most_bytes=job.limits.temporary_bytes))
    return await run(
        argv,
        cwd=job.workspace,
        timeout_s=job.limits.timeout_s,
        stdin=job.stdin,
        output_bytes=job.limits.output_bytes,
        watches=(
            partial(watch_tree, processes=job.limits.processes, memory_bytes=job.limits.memory_bytes),
            partial(quotas.watch, most_processes=job.limits.processes),
        ),
        umask=job.umask,
        handles=handles,
    )


async def _service_excess(pid: int, job: _Job, temporary: Path) -> str:
    """As `_run_watched` looks at a run, at a pace that costs nothing for days."""
    quotas = Quotas()
    if job.is_writable:
        await quotas.add(job.workspace, growth=job.limits.growth)
    await quotas.add(temporary, growth=replace(job.limits.growth, most_bytes=job.limits.temporary_bytes))
    looks = (
        watch_tree(pid, job.limits.processes, job.limits.memory_bytes, every_s=SERVICE_WATCH_S),
        quotas.watch(pid, job.limits.processes, every_s=SERVICE_WATCH_S),
    )
    watching = [asyncio.ensure_future(look) for look in looks]  # noqa: TID251 - ended right below
    try:
        done, _ = await asyncio.wait(watching, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for one in watching:
            one.cancel()
