"""Scheduled jobs from the chat: the next three times are told, paused and deleted ones come back, users stay apart."""

import re
from collections import defaultdict
from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.errors import Conflict, CortexError, ToolFailed
from cortex.base.user import User
from cortex.ports.schedule import Job, Jobs, Timings
from tests.tool_world import World
from tests.tools.timed import MemoryJobs, PlainTimings

PROMPT = "Sum up the news."


class DeadJobs(MemoryJobs):
    async def list(self) -> Sequence[Job]:
        raise ToolFailed("The scheduler cannot be reached now.")


@pytest.fixture
def kept(world: World) -> dict[str, MemoryJobs]:
    jobs: dict[str, MemoryJobs] = defaultdict(MemoryJobs)
    world.wired[Timings] = PlainTimings()
    world.bound[Jobs] = jobs.__getitem__
    return jobs


async def _news(world: World, user: User, name: str = "News") -> None:
    await world.text(user, "cron_add", prompt=PROMPT, when="every day at 7", name=name)


async def test_a_new_job_is_told_with_its_next_three_times(
    world: World, ann: User, kept: dict[str, MemoryJobs]
) -> None:
    arguments = {"prompt": " Sum up the news. ", "when": "every day at 7"}
    text = (await world.run(world.ctx(ann, role="research"), "cron_add", **arguments)).text
    assert text.startswith(f"Scheduled: {PROMPT} (id ")
    assert re.findall(r"2026-11-\d\d 07:00", text) == ["2026-11-21 07:00", "2026-11-22 07:00", "2026-11-23 07:00"]
    (job,) = kept[ann.id].rows.values()
    assert (job.prompt, job.role, job.timing.time_zone) == (PROMPT, "research", "Europe/Berlin")


async def test_a_job_of_another_zone_names_it(world: World, ann: User, kept: dict[str, MemoryJobs]) -> None:
    await _news(world, ann)
    text = await world.text(replace(ann, time_zone="America/New_York"), "cron_list")
    assert "07:00, Europe/Berlin)" in text


async def test_a_repeated_step_adds_one(world: World, ann: User, kept: dict[str, MemoryJobs]) -> None:
    for _ in range(2):
        await world.run(world.ctx(ann, call_id="one"), "cron_add", prompt="Look.", when="every day at 7")
    assert len(kept[ann.id].rows) == 1


@pytest.mark.parametrize(
    ("prompt", "when", "says"),
    [
        ("  ", "every day at 7", "1 to 4000"),
        ("x" * 4_001, "every day at 7", "1 to 4000"),
        ("Look.", "yesterday at 9", "never happens"),
        ("Look.", "every 30 seconds", "once per minute"),
        ("Look.", "often", "is no time"),
    ],
    ids=["empty", "long", "past", "too often", "unreadable"],
)
async def test_what_cannot_be_scheduled_is_said(
    world: World, ann: User, kept: dict[str, MemoryJobs], prompt: str, when: str, says: str
) -> None:
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "cron_add", prompt=prompt, when=when)
    assert kept[ann.id].rows == {}


@pytest.mark.usefixtures("kept")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    for name, arguments in (("cron_add", {"when": "every day at 7"}), ("cron_toggle", {"job": "news"})):
        with pytest.raises(ValidationError):
            await world.text(ann, name, **arguments)


@pytest.mark.usefixtures("kept")
async def test_jobs_are_listed_and_narrowed_by_words(world: World, ann: User) -> None:
    assert "cron_add" in await world.text(ann, "cron_list")
    await _news(world, ann)
    await world.text(ann, "cron_add", prompt="Check the backup.", when="every day at 3", name="Backup")
    assert (await world.text(ann, "cron_list")).count("\n- ") == 1
    assert "Backup" not in await world.text(ann, "cron_list", query="news")
    assert "'dog'" in await world.text(ann, "cron_list", query="dog")


@pytest.mark.usefixtures("kept")
async def test_a_job_is_paused_and_runs_again(world: World, ann: User, kept: dict[str, MemoryJobs]) -> None:
    await _news(world, ann)
    await world.text(ann, "cron_toggle", job="news", enabled=False)
    assert [job.is_enabled for job in kept[ann.id].rows.values()] == [False]
    assert "paused" in await world.text(ann, "cron_list")
    assert "already" in await world.text(ann, "cron_toggle", job="news", enabled=False)
    assert "Next: 2026-11-21 07:00" in await world.text(ann, "cron_toggle", job="NEWS", enabled=True)


@pytest.mark.usefixtures("kept")
async def test_two_that_fit_are_named_instead_of_guessed(world: World, ann: User) -> None:
    for name in ("Morning news", "Evening news"):
        await _news(world, ann, name)
    with pytest.raises(ToolFailed, match="2 jobs fit 'news'"):
        await world.text(ann, "cron_remove", job="news")
    for words in ("weather", ""):
        with pytest.raises(ToolFailed):
            await world.text(ann, "cron_remove", job=words)


async def test_each_step_can_be_taken_back(world: World, ann: User, kept: dict[str, MemoryJobs]) -> None:
    await _news(world, ann)
    _, paused = await world.noted(ann, "cron_toggle", job="news", enabled=False)
    await world.undo(ann, "cron", paused)
    assert [job.is_enabled for job in kept[ann.id].rows.values()] == [True]
    _, removed = await world.noted(ann, "cron_remove", job="news")
    assert kept[ann.id].rows == {}
    await world.undo(ann, "cron", removed)
    assert [job.name for job in kept[ann.id].rows.values()] == ["News"]
    _, added = await world.noted(ann, "cron_add", prompt="Look.", when="every day at 7", name="Look")
    text, again = await world.undo_twice(ann, "cron", added)
    assert text == "The job 'Look' is back."
    await world.undo(ann, "cron", again)
    assert [job.name for job in kept[ann.id].rows.values()] == ["News"]
    _, paused = await world.noted(ann, "cron_toggle", job="news", enabled=False)
    assert await world.undo_twice(ann, "cron", paused)
    assert [job.is_enabled for job in kept[ann.id].rows.values()] == [False]


@pytest.mark.usefixtures("kept")
async def test_what_changed_since_is_left(world: World, ann: User) -> None:
    _, added = await world.noted(ann, "cron_add", prompt="Look.", when="every day at 7", name="Look")
    _, paused = await world.noted(ann, "cron_toggle", job="look", enabled=False)
    with pytest.raises(Conflict):
        await world.undo(ann, "cron", added)
    await world.text(ann, "cron_toggle", job="look", enabled=True)
    with pytest.raises(Conflict):
        await world.undo(ann, "cron", paused)


@pytest.mark.usefixtures("kept")
async def test_words_from_outside_stay_marked(world: World, ann: User) -> None:
    await world.run(world.ctx(ann, is_tainted=True), "cron_add", prompt="Look.", when="every day at 7", name="a")
    assert (await world.run(world.ctx(ann), "cron_list")).is_tainted
    assert (await world.run(world.ctx(ann), "cron_toggle", job="a", enabled=False)).is_tainted


async def test_another_users_jobs_are_out_of_reach(
    world: World, ann: User, ben: User, kept: dict[str, MemoryJobs]
) -> None:
    _, note = await world.noted(ann, "cron_add", prompt="ann's secret", when="every day at 7")
    assert "secret" not in await world.text(ben, "cron_list")
    for name, arguments in (("cron_remove", {}), ("cron_toggle", {"enabled": False})):
        with pytest.raises(ToolFailed):
            await world.text(ben, name, job=note.target, **arguments)
    with pytest.raises(CortexError):
        await world.undo(ben, "cron", note)
    assert [job.is_enabled for job in kept[ann.id].rows.values()] == [True]


async def test_a_scheduler_that_cannot_be_reached_is_no_silent_success(world: World, ann: User) -> None:
    world.wired |= {Timings: PlainTimings(), Jobs: DeadJobs()}
    for name, arguments in (("cron_list", {}), ("cron_remove", {"job": "news"})):
        with pytest.raises(ToolFailed, match="cannot be reached"):
            await world.text(ann, name, **arguments)
