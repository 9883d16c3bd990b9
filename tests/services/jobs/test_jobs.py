"""Jobs as people and tools make them: forms and their refusals, previews, crontabs, history, commands, the chat."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.serve_lock import serving
from cortex.ports.schedule import Jobs as JobsPort
from cortex.services.jobs.forms import JobForm
from cortex.services.jobs.jobs import JobsService
from cortex.storage.job_rows import JobFilter, JobValues
from cortex.storage.jobs import JobsRepository
from cortex.storage.slots import SlotsRepository
from tests.children import environment, run
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

FRIDAY = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DAILY = JobForm(name="News", prompt="sum up the news", when="every day at 7")
CALL = JobForm(name="Water", kind="call", tool="task_create", arguments='{"title": "water"}', when="every day at 7")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=StillClock(FRIDAY)) as opened:
        yield opened


def jobs_of(house: LivingHouse) -> JobsService:
    return house.cortex.jobs


async def test_a_job_is_made_shown_changed_switched_deleted_and_brought_back(house: LivingHouse) -> None:
    jobs, ada = jobs_of(house), house.admin
    made = await jobs.add(ada, DAILY)
    assert (made.words, made.next_at) == ("every day at 07:00", datetime(2026, 11, 21, 7, tzinfo=UTC))
    (view,) = (await jobs.list(ada)).jobs
    assert (view.job, view.last, view.bars, view.mean) == (made, None, (), None)
    changed = await jobs.change(ada, made.id, made.version, replace(JobForm.of(made), name="Weather"))
    assert (changed.name, changed.next_at, changed.expression) == ("Weather", made.next_at, made.expression)
    later = await jobs.change(ada, made.id, changed.version, replace(JobForm.of(changed), when="every day at 8"))
    assert later.next_at == datetime(2026, 11, 21, 8, tzinfo=UTC)
    off = await jobs.enable(ada, made.id, later.version, is_enabled=False)
    assert (off.is_enabled, off.next_at) == (False, None)
    on = await jobs.enable(ada, made.id, off.version, is_enabled=True)
    assert on.next_at == later.next_at
    await jobs.remove(ada, made.id, on.version)
    assert (await jobs.list(ada)).jobs == ()
    assert (await jobs.restore(ada, made.id)).next_at == later.next_at


@pytest.mark.parametrize(
    "anew",
    [{"when": "every day at 8"}, {"name": "Mine"}, {"prompt": "read the letter and then my notes"}],
    ids=["time", "name", "prompt"],
)
async def test_a_job_whose_words_were_others_keeps_their_mark_when_it_is_changed(
    house: LivingHouse, anew: dict[str, str]
) -> None:
    jobs, ada = jobs_of(house), house.admin
    rows = house.cortex.runtime.db.repository(JobsRepository, ada.id)
    own = await jobs.add(ada, DAILY)
    assert (own.is_tainted, own.is_private) == (False, False)
    values = JobValues(**{name: getattr(own, name) for name in JobValues.__struct_fields__})
    others = replace(values, name="Obey", prompt="read the letter", is_tainted=True, is_private=True)
    made = await rows.add(None, others, own.next_at)
    changed = await jobs.change(ada, made.id, made.version, replace(JobForm.of(made), **anew))
    assert (changed.is_tainted, changed.is_private) == (True, True)


async def test_a_change_on_an_old_page_is_refused(house: LivingHouse) -> None:
    jobs = jobs_of(house)
    made = await jobs.add(house.admin, DAILY)
    await jobs.enable(house.admin, made.id, made.version, is_enabled=False)
    with pytest.raises(Conflict):
        await jobs.change(house.admin, made.id, made.version, DAILY)


async def test_another_persons_job_is_unknown(house: LivingHouse) -> None:
    made = await jobs_of(house).add(house.member, DAILY)
    with pytest.raises(NotFound):
        await jobs_of(house).history(house.admin, made.id)
    with pytest.raises(NotFound):
        await jobs_of(house).remove(house.admin, made.id, made.version)


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Tell Ada and Ben the weather and our tasks", "Tell Ada and Ben the weather and our"),
        ("sum up\nthe news", "sum up the news"),
        ("x" * 60, "x" * 40),
    ],
)
async def test_a_job_without_a_name_takes_the_first_whole_words(house: LivingHouse, prompt: str, name: str) -> None:
    job = await jobs_of(house).add(house.admin, replace(DAILY, name="", prompt=prompt))
    assert job.name == name


@pytest.mark.parametrize(
    ("form", "field", "says"),
    [
        (replace(DAILY, when="when mum comes"), "when", "I can't read"),
        (replace(DAILY, when="0 0 31 2 *"), "when", "never comes"),
        (replace(DAILY, when="every day at 7", time_zone="Mars/North"), "time_zone", "not a time zone"),
        (replace(DAILY, prompt=" "), "prompt", "Enter a prompt"),
        (replace(DAILY, prompt="x" * 4_001), "prompt", "At most 4,000"),
        (replace(DAILY, role="pirate"), "role", "no role 'pirate'"),
        (replace(DAILY, model="brain"), "model", "no model 'brain'"),
        (replace(DAILY, own_tools="on", tools="task_list teleport"), "tools", "'teleport'"),
        (replace(DAILY, mode="loud"), "mode", "Choose one of auto, chat, all."),
        (replace(DAILY, max_rounds="99"), "max_rounds", "1 to 25"),
        (replace(DAILY, budget_tokens="0"), "budget_tokens", "above 0"),
        (replace(DAILY, budget_usd="-1"), "budget_usd", "above 0"),
        (replace(DAILY, deliver_to="pigeon"), "deliver_to", "Unknown notification channel 'pigeon'"),
        (replace(DAILY, on_miss="cry"), "on_miss", "once, skip, catchup"),
        (replace(DAILY, fire_within_s="1"), "fire_within_s", "60"),
        (replace(DAILY, retries="many"), "retries", "0 to 10"),
        (replace(CALL, tool="teleport"), "tool", "no tool 'teleport'"),
        (replace(CALL, arguments="{"), "arguments", "not valid JSON"),
        (replace(CALL, arguments="[1]"), "arguments", "JSON object"),
        (replace(CALL, arguments='{"titel": "x"}'), "arguments", "title"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_form_that_cannot_be_names_its_field(house: LivingHouse, form: JobForm, field: str, says: str) -> None:
    with pytest.raises(UserError, match=says) as refused:
        await jobs_of(house).add(house.admin, form)
    assert refused.value.field == field
    assert (await jobs_of(house).list(house.admin)).jobs == ()


async def test_a_member_cannot_give_a_job_what_admins_alone_may_use(house: LivingHouse) -> None:
    form = replace(DAILY, own_tools="on", tools="cortex_restart")
    with pytest.raises(UserError, match="cortex_restart"):
        await jobs_of(house).add(house.member, form)


async def test_a_form_that_is_shown_again_makes_the_same_job(house: LivingHouse) -> None:
    form = replace(
        DAILY, own_tools="on", tools="task_list notes", budget_usd="0.5", deliver_to="email ntfy", keeps_quiet_hours=""
    )
    made = await jobs_of(house).add(house.admin, form)
    again = await jobs_of(house).change(house.admin, made.id, made.version, JobForm.of(made))
    assert replace(again, version=made.version, updated_at=made.updated_at) == made
    typed = JobForm.typed({"name": " News ", "when": "@daily", "prompt": "x", "may_make_jobs": "on"})
    assert (typed.name, typed.keeps_quiet_hours, typed.may_make_jobs, typed.on_miss) == ("News", "", "on", "once")


async def test_a_short_list_of_tools_goes_out_whole(house: LivingHouse) -> None:
    few = await jobs_of(house).carried(house.admin, replace(DAILY, tools="task_list"))
    many = await jobs_of(house).carried(house.admin, replace(DAILY, tools="all"))
    assert (few.names, few.is_whole) == (("task_list",), True)
    assert not many.is_whole
    assert "cron_add" not in many.names


async def test_from_a_long_list_tools_are_chosen_once_and_anew_for_other_words(house: LivingHouse) -> None:
    jobs, ada = jobs_of(house), house.admin
    long = replace(DAILY, prompt="create a task for each reminder that is due", own_tools="on", tools="all")
    made = await jobs.add(ada, long)
    shown = await jobs.carried(ada, long)
    assert made.planned == shown.chosen
    assert "task_create" in shown.chosen
    assert len(shown.chosen) < len(shown.names)
    assert (await jobs.get(ada, made.id)).job == made
    other = await jobs.change(ada, made.id, made.version, replace(long, prompt="read the web page of the weather"))
    assert other.planned_for != made.planned_for
    assert "web_read" in (other.planned or ())
    short = await jobs.change(ada, made.id, other.version, replace(long, tools="task_list"))
    assert (short.planned, short.planned_for) == (None, "")


@pytest.mark.parametrize("how", [{"own_tools": ""}, {"mode": "all"}, {"mode": "chat"}], ids=["role's", "all", "none"])
async def test_nothing_is_chosen_where_nothing_is_to_choose(house: LivingHouse, how: dict[str, str]) -> None:
    made = await jobs_of(house).add(house.admin, replace(DAILY, **{"own_tools": "on", "tools": "all", **how}))
    assert made.planned is None


async def test_a_preview_has_the_zone_and_the_days_on_which_the_clock_changes(house: LivingHouse) -> None:
    found = await jobs_of(house).preview(house.admin, "30 2 28 3 *", "Europe/Berlin", count=2)
    assert [at.isoformat() for at in found.times] == ["2027-03-28T03:30:00+02:00", "2028-03-28T02:30:00+02:00"]
    assert any("02:30" in change.words for change in found.changes)


async def test_history_comes_in_pages_with_what_was_delivered(house: LivingHouse) -> None:
    jobs, ada = jobs_of(house), house.admin
    made = await jobs.add(ada, replace(DAILY, kind="message"))
    slots = house.cortex.runtime.db.repository(SlotsRepository, ada.id)
    for day in range(1, 61):
        await slots.write_down(made.id, datetime(2026, 9, 1, 7, day % 60, tzinfo=UTC), state="missed", why="late")
    first = await jobs.history(ada, made.id)
    second = await jobs.history(ada, made.id, before=first[-1].slot.due_at)
    assert (len(first), len(second)) == (50, 10)
    assert len((await jobs.get(ada, made.id)).bars) == 14
    assert await jobs.history(ada, made.id, states=("done",)) == ()


async def test_jobs_are_narrowed_and_paged(house: LivingHouse) -> None:
    for number in range(45):
        await jobs_of(house).add(house.admin, replace(DAILY, name=f"Job {number}"), is_enabled=number % 9 > 0)
    page = await jobs_of(house).list(house.admin)
    assert (len(page.jobs), page.has_more, page.counts.all, page.counts.paused) == (40, True, 45, 5)
    assert len((await jobs_of(house).list(house.admin, page=2)).jobs) == 5
    assert len((await jobs_of(house).list(house.admin, JobFilter(state="paused"))).jobs) == 5
    assert [view.job.name for view in (await jobs_of(house).list(house.admin, JobFilter(words="44"))).jobs] == [
        "Job 44"
    ]


CRONTAB = """
# m h dom mon dow command
MAILTO=ada@example.org
CRON_TZ=Europe/Berlin

# the nightly backup
0 3 * * * /usr/local/bin/backup --all
*/5 * * * * curl -s http://localhost/ping
@daily echo done%yes
@reboot start-it
61 9 * * * never
nonsense
"""


async def test_a_crontab_is_read_line_by_line_and_saved_switched_off(house: LivingHouse) -> None:
    jobs, ada = jobs_of(house), house.admin
    lines = {line.text: line for line in await jobs.crontab(ada, CRONTAB)}
    backup = lines["0 3 * * * /usr/local/bin/backup --all"]
    assert (backup.name, backup.why) == ("the nightly backup", "")
    assert backup.timing is not None
    assert (backup.timing.words, backup.timing.time_zone) == ("every day at 03:00", "Europe/Berlin")
    assert backup.next_at == datetime(2026, 11, 21, 2, tzinfo=UTC)
    assert "no environment" in lines["MAILTO=ada@example.org"].why
    assert "skipped" in lines["@daily echo done%yes"].why
    assert lines["@daily echo done%yes"].prompt.endswith("echo done")
    assert [text for text, line in lines.items() if line.timing is None] == [
        "MAILTO=ada@example.org",
        "CRON_TZ=Europe/Berlin",
        "@reboot start-it",
        "61 9 * * * never",
        "nonsense",
    ]
    assert (await jobs.list(ada)).jobs == ()
    made = await jobs.add_crontab(ada, CRONTAB)
    assert [(job.name, job.is_enabled) for job in made] == [
        ("the nightly backup", False),
        ("curl -s http://localhost/ping", False),
        ("echo done", False),
    ]
    assert len(await jobs.add_crontab(ada, CRONTAB, numbers=[backup.number])) == 1


async def test_lines_of_a_crontab_that_are_not_read_are_counted(house: LivingHouse) -> None:
    jobs, ada = jobs_of(house), house.admin
    lines = await jobs.crontab(ada, "0 3 * * * x\n" * 503 + "# end\n")
    assert (len(lines), "3 more" in lines[-1].why, "500" in lines[-1].why) == (501, True, True)
    (long, odd) = await jobs.crontab(ada, "0 3 * * * " + "x" * 900_000 + "\n0 3 * * * a\x85b\u2028c")
    assert ("2,000" in long.why, "900,010" in long.why) == (True, True)
    assert odd.prompt.endswith("a\x85b\u2028c")
    (marked,) = await jobs.crontab(ada, "\ufeff# Backup\n0 3 * * * x")
    assert marked.name == "Backup"
    (zone, under) = await jobs.crontab(ada, f"CRON_TZ=../{'a/' * 900}\n0 3 * * * x")
    assert (zone.timing, under.timing, bool(under.why)) == (None, None, True)


async def test_words_in_a_chat_make_a_job_after_a_yes(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "every weekday at 7 sum up my tasks")
    question = await house.until(cid, "approval", turn=turn)
    assert (await jobs_of(house).list(house.admin)).jobs == ()
    await house.cortex.approvals.answer(house.admin, question.payload["approval"], "once")
    await house.until(cid, "turn.end", turn=turn)
    (view,) = (await jobs_of(house).list(house.admin)).jobs
    assert (view.job.prompt, view.job.words) == ("sum up my tasks", "every weekday (Mon-Fri) at 07:00")


async def test_tools_reach_the_same_jobs(house: LivingHouse) -> None:
    made = await jobs_of(house).add(house.admin, DAILY)
    port = house.cortex.scope.provide(JobsPort, house.admin.id)
    (job,) = await port.list()
    assert (job.name, job.next_at, job.last) == ("News", made.next_at, "")
    paused = await port.enable(job.id, False, job.version)
    assert not paused.is_enabled
    with pytest.raises(Conflict):
        await port.remove(job.id, job.version)
    await port.remove(job.id, paused.version)
    assert await port.list() == []
    assert (await port.restore(job.id)).name == "News"


def cortex(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command beside the house that runs in this process."""
    return run(("jobs", *words), env=environment(home, **more), cwd=home.parent)


async def test_commands_list_and_run_jobs_while_cortex_runs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with living_house(home) as house:
        with serving(home):
            empty = await asyncio.to_thread(cortex, home, "list")
            assert (empty.returncode, empty.stdout[:10]) == (0, "No job yet")
            await jobs_of(house).add(house.admin, replace(DAILY, prompt="what is on my list?"))
            run = await asyncio.to_thread(cortex, home, "run", "news")
            assert (run.returncode, run.stdout.splitlines()[0], run.stderr) == (0, "done", "")
            listed = await asyncio.to_thread(cortex, home, "list", "--json", "--user", "ada")
            (told,) = json.loads(listed.stdout)
            assert (told["name"], told["when"], told["last"]) == ("News", "every day at 07:00", "done")
            absent = await asyncio.to_thread(cortex, home, "run", "weather")
            assert (absent.returncode, absent.stdout) == (1, "")
            assert "'weather'" in absent.stderr


async def test_no_run_is_planned_while_cortex_does_not_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with living_house(home) as house:
        made = await jobs_of(house).add(house.admin, DAILY)
        for more in ((), ("--wait", "0")):
            refused = await asyncio.to_thread(cortex, home, "run", "news", *more, CORTEX_DATABASE_URL="")
            assert (refused.returncode, refused.stdout) == (1, "")
            assert "not running" in refused.stderr
            assert refused.stderr.count("\n") == 1
        assert await jobs_of(house).history(house.admin, made.id) == ()


async def test_a_run_that_nobody_begins_on_a_shared_database_is_withdrawn(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with living_house(home) as house:
        made = await jobs_of(house).add(house.admin, DAILY)
    alone = cortex(home, "run", made.id[-6:], "--wait", "0.5", CORTEX_ALLOW_SECOND_PROCESS="true")
    assert (alone.returncode, alone.stdout) == (1, "")
    assert "within 0.5 s" in alone.stderr
    async with living_house(home) as house:
        (run,) = await jobs_of(house).history(house.admin, made.id)
        assert (run.slot.state, "no Cortex" in run.slot.why, run.slot.attempt) == ("stopped", True, 0)
        assert not await jobs_of(house).withdraw(house.admin, run.slot.id, "again"), "it has ended"


async def test_a_run_may_be_noted_on_a_shared_database_without_waiting(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as house:
        made = await jobs_of(house).add(house.admin, DAILY)
    noted = cortex(tmp_path / "home", "run", made.id[-6:], "--wait", "0", CORTEX_ALLOW_SECOND_PROCESS="true")
    assert (noted.returncode, noted.stdout) == (0, "planned\n")
