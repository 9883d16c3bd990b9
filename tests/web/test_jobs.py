"""The pages of jobs: what a person reads before and after saving, what their forms change, and what a run leaves."""

import re
from datetime import timedelta

import httpx
import pytest
from msgspec.structs import replace
from sqlalchemy import insert

from cortex.app import Cortex
from cortex.base.record import as_dict
from cortex.services.jobs.forms import SETTINGS, JobForm
from cortex.services.jobs.jobs import JobFilter, JobView
from cortex.services.notifier import notice_id
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.notices import NoticesRepository, NoticeValues, Way
from cortex.storage.schema import JobTable, SlotTable
from cortex.storage.slot_line import SlotLineRepository
from cortex.storage.slots import SlotRow, SlotsRepository, slot_id
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from tests.web.marks import marks

BRIEF = JobForm(name="Brief", prompt="Say what is due.", when="every weekday at half past seven")


def fields(form: JobForm, **more: str) -> dict[str, str]:
    """The form as a browser sends it: a switch that is off is not there."""
    switches = ("own_tools", "keeps_quiet_hours", "may_make_jobs", "deliver_to")
    return {name: value for name, value in {**as_dict(form), **more}.items() if value or name not in switches}


async def made(house: Cortex, who: Browser, form: JobForm = BRIEF) -> JobRow:
    return await house.jobs.add(who.user, form)


async def jobs_of(house: Cortex, who: Browser, wanted: JobFilter | None = None) -> tuple[JobView, ...]:
    return (await house.jobs.list(who.user, wanted)).jobs


async def ran(house: Cortex, who: Browser, job: JobRow, state: str = "done", ago: int = 1, why: str = "") -> SlotRow:
    """A run of so many hours ago that is over; one that was started cost two cents."""
    at, slots = house.runtime.clock() - timedelta(hours=ago), house.runtime.db.repository(SlotsRepository, who.user.id)
    await slots.write_down(job.id, at)
    id = slot_id(job.id, at)
    if state not in ("missed", "skipped"):
        async with house.runtime.db.transaction(who.user.id) as repository:
            chat = await repository(ConversationsRepository).create(
                "orchestrator", "auto", "Brief", id=f"c-{job.id}", source="job", is_title_tainted=False
            )
            await repository(TurnsRepository).create(
                NewTurn(id, chat.id, "x", channel="cron", job_id=job.id, **PLAIN_TURN)
            )
            await repository(JobsRepository).settle_in(job.id, chat.id)
        await slots.start(id, id)
    end = await slots.end(id, state, why=why, result=f"result of {ago}", cost_usd=0.02, tokens=1234)  # type: ignore[arg-type]
    assert end
    return end.slot


async def test_a_visitor_is_led_to_the_login(visitor: httpx.AsyncClient) -> None:
    for path in ("/jobs", "/jobs/new", "/jobs/import", "/jobs/x", "/jobs/x/runs"):
        assert (await visitor.get(path)).headers["location"].startswith("/login")


async def test_the_empty_page_offers_three_examples_that_can_be_saved(house: Cortex, ada: Browser) -> None:
    page = await ada.get("/jobs")
    assert "<!doctype html>" in page.text
    examples = re.findall(r'href="(/jobs/new\?example=\d)"', page.text)
    assert len(examples) == 3
    for example in examples:
        form = (await ada.get(example)).text
        typed = {
            "name": re.findall(r'name="name"[^>]* value="([^"]*)"', form)[0],
            "when": re.findall(r'name="when"[^>]* value="([^"]*)"', form)[0],
            "kind": re.findall(r'name="kind" value="(\w+)" checked', form)[0],
            "prompt": re.findall(r'<textarea[^>]* name="prompt"[^>]*>([^<]*)', form)[0],
            "tool": re.findall(r'name="tool"[^>]* value="([^"]*)"', form)[0],
        }
        assert (await ada.post("/jobs/new", **typed)).status_code == 303
    assert {one.job.kind for one in await jobs_of(house, ada)} == {"prompt", "message", "call"}
    assert "<html" not in (await ada.fragment("/jobs")).text


async def test_a_job_is_made_of_words_and_shown_with_its_next_run(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/jobs/new", **fields(BRIEF, time_zone="Asia/Kolkata", deliver_to="email"))
    (one,) = await jobs_of(house, ada)
    assert answer.headers["location"] == f"/jobs/{one.job.id}"
    assert (one.job.expression, one.job.time_zone, one.job.deliver_to) == ("30 7 * * 1-5", "Asia/Kolkata", ("email",))
    page = (await ada.get("/jobs")).text
    assert "07:30, Asia/Kolkata</time>" in page, "in its own zone"
    assert "weekday (Mon-Fri) at 07:30" in page
    assert "Saved: Brief, first" in page


@pytest.mark.parametrize("when", ["every weekday at half past seven", "30 7 * * 1-5", "every 15 minutes"])
async def test_a_time_stays_as_it_was_written_with_its_reading_beside_it(
    house: Cortex, ada: Browser, when: str
) -> None:
    job = await made(house, ada, replace(BRIEF, when=when))
    page = (await ada.get(f"/jobs/{job.id}")).text
    assert re.findall(r'name="when"[^>]* value="([^"]*)"', page) == [when]
    assert f"<b>{job.words[:1].upper()}{job.words[1:]}</b>" in page
    assert (f'<code class="sub">{job.expression}</code>' in page) == (job.timing_kind == "cron")
    await ada.post(f"/jobs/{job.id}", **fields(JobForm.of(job), name="Other", version="1"))
    (one,) = await jobs_of(house, ada)
    assert (one.job.name, one.job.expression, JobForm.of(one.job).when) == ("Other", job.expression, when)


async def test_the_form_shows_every_choice_with_a_line_of_help(house: Cortex, ada: Browser) -> None:
    page = (await ada.get("/jobs/new")).text
    names = set(re.findall(r'<(?:input|select|textarea)[^>]* name="(\w+)"', page)) - {"q"}
    assert names >= set(as_dict(JobForm()))
    helped = set(re.findall(r'id="f-(\w+)-h"', page))
    assert helped >= set(as_dict(JobForm())) - {"conversation_id"}


async def test_a_way_to_be_told_says_at_its_box_what_is_missing(house: Cortex, ada: Browser) -> None:
    page = (await ada.get("/jobs/new")).text
    assert len(re.findall(r"<span>(?:ntfy|Webhook)<br><span", page)) == 2
    await house.addresses.put(ada.user, "ntfy", "https://ntfy.sh/some-topic")
    assert "<span>ntfy</span>" in (await ada.get("/jobs/new")).text


async def test_without_a_model_the_form_says_that_none_answers(ada: Browser) -> None:
    assert "Offline demo model" in (await ada.get("/jobs/new")).text
    form = {"name": "m", "provider": "openai", "model": "s", "base_url": "http://127.0.0.1:9/v1", "api_key": "test-key"}
    assert (await ada.post("/models", **form)).status_code == 303
    assert "Offline demo model" not in (await ada.get("/jobs/new")).text


async def test_words_are_read_before_anything_is_saved(house: Cortex, ada: Browser) -> None:
    asked = {"when": "every day at 2:30", "time_zone": "Europe/Berlin"}
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    part = await ada.http.post("/jobs/preview", data=asked, headers=headers)
    assert "Every day at 02:30" in part.text
    assert len(re.findall(r"\d{4}, 02:30", part.text)) == 10, "the next ten"
    assert "<form" not in part.text
    page = (await ada.post("/jobs/preview", **asked)).text
    assert marks(page).values["when"] == asked["when"]
    assert "Every day at 02:30" in page
    assert await jobs_of(house, ada) == ()


async def test_a_change_of_the_clock_has_a_line_among_the_times(ada: Browser) -> None:
    asked = {"when": "0 3 28 2,3 *", "time_zone": "Europe/Berlin"}
    part = (await ada.post("/jobs/preview", **asked)).text
    first, last = part.index("28 Feb 2027"), part.index("28 Mar 2027")
    assert first < part.index("02:00 -&gt; 03:00") < last
    assert ("03:00 +01:00" in part, "03:00 +02:00" in part) == (True, True)
    alike = (await ada.post("/jobs/preview", when="0 3 28 7,8 *", time_zone="Europe/Berlin")).text
    assert ("28 Jul 2027, 03:00<" in alike, "+02:00" in alike) == (True, False), (
        "an offset that never changes says nothing"
    )


async def test_what_a_list_of_tools_costs_is_told_before_saving(ada: Browser) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}

    async def told(**typed: str) -> str:
        asked = {"own_tools": "on", "when": "every day at 7", **typed}
        return (await ada.http.post("/jobs/preview?part=tools", data=asked, headers=headers)).text

    assert re.search(r"\d tools, [\d,]+ tokens", await told(tools="task_list notes"))
    assert "names is a tool" in await told(tools="zebra")
    long = await told(tools="all", prompt="create a task for each reminder that is due")
    assert re.search(r"every run sends: <code>[^<]*task_create", re.sub(r"\s+", " ", long))
    assert "none of it" in await told(tools="all", prompt="hello")
    assert (
        "every run sends" in (await ada.post("/jobs/preview", own_tools="on", tools="all", prompt="list my tasks")).text
    )


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"when": "whenever"}, "when"),
        ({"when": "* * * * * *"}, "when"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"prompt": ""}, "prompt"),
        ({"kind": "dance"}, "kind"),
        ({"kind": "call", "tool": "nothing_such"}, "tool"),
        ({"kind": "call", "tool": "task_list", "arguments": "[1]"}, "arguments"),
        ({"role": "nobody"}, "role"),
        ({"model": "none such"}, "model"),
        ({"own_tools": "on", "tools": "zebra"}, "tools"),
        ({"mode": "loud"}, "mode"),
        ({"max_rounds": "0"}, "max_rounds"),
        ({"budget_tokens": "few"}, "budget_tokens"),
        ({"budget_usd": "-1"}, "budget_usd"),
        ({"deliver_to": "pigeon"}, "deliver_to"),
        ({"notify_on": "x"}, "notify_on"),
        ({"on_miss": "x"}, "on_miss"),
        ({"fire_within_s": "1"}, "fire_within_s"),
        ({"overlap": "x"}, "overlap"),
        ({"retries": "99"}, "retries"),
        ({"timeout_s": ""}, "timeout_s"),
        ({"pause_after": "many"}, "pause_after"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
async def test_what_is_refused_is_told_at_its_field(
    house: Cortex, ada: Browser, typed: dict[str, str], field: str
) -> None:
    answer = await ada.post("/jobs/new", **fields(BRIEF, **typed))
    assert answer.status_code == 422
    assert f'id="f-{field}-e"' in answer.text
    assert re.search(rf'aria-describedby="[^"]*f-{field}-e', answer.text)
    assert 'value="Brief"' in answer.text, "what was typed stays"
    assert await jobs_of(house, ada) == ()


async def test_a_change_is_kept_and_its_rhythm_stays_as_it_was(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada, replace(BRIEF, when="every 15 minutes"))
    page = (await ada.get(f"/jobs/{job.id}")).text
    assert "Every 15 minutes" in page
    assert page.count("<li>") >= 10
    form = JobForm.of(job)
    answer = await ada.post(f"/jobs/{job.id}", **fields(form, name="Quarter", may_make_jobs="on", version="1"))
    assert answer.status_code == 303
    (one,) = await jobs_of(house, ada)
    assert (one.job.name, one.job.may_make_jobs, one.job.expression) == ("Quarter", True, job.expression)
    assert (await ada.post(f"/jobs/{job.id}", **fields(form, retries="x", version="2"))).status_code == 422


@pytest.mark.parametrize("name", SETTINGS)
async def test_each_setting_is_a_control_of_the_form_and_is_kept(house: Cortex, ada: Browser, name: str) -> None:
    job = await made(house, ada)
    other = {
        "number": str(SETTINGS[name].limits[1]),
        "choice": next(reversed([*SETTINGS[name].choices]), ""),
        "switch": "" if SETTINGS[name].default else "on",
    }[SETTINGS[name].kind]
    page = (await ada.get(f"/jobs/{job.id}")).text
    assert re.search(rf'<(input|select)[^>]* name="{name}"', page)
    saved = await ada.post(f"/jobs/{job.id}", **fields(replace(JobForm.of(job), **{name: other}), version="1"))
    assert saved.status_code == 303
    (one,) = await jobs_of(house, ada)
    assert getattr(JobForm.of(one.job), name) == other != SETTINGS[name].default


@pytest.mark.parametrize("name", [name for name, one in SETTINGS.items() if one.kind != "switch"])
async def test_a_setting_that_is_refused_stands_in_an_open_section(ada: Browser, name: str) -> None:
    page = (await ada.post("/jobs/new", **fields(BRIEF, **{name: "nonsense"}))).text
    before = page[: page.index(f'id="f-{name}-e"')]
    assert re.findall(r"<details class=\"more[^>]*>", before)[-1].endswith(" open>")


async def test_who_saves_over_a_change_sees_both(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    await house.jobs.change(ada.user, job.id, 1, replace(JobForm.of(job), name="Newer"))
    stale = fields(JobForm.of(job), name="Mine")
    answer = await ada.post(f"/jobs/{job.id}", **stale, version="1")
    assert answer.status_code == 409
    assert "<b>Newer</b>" in answer.text
    assert 'value="Mine"' in answer.text
    assert 'name="version" value="2"' in answer.text
    assert (await ada.post(f"/jobs/{job.id}", **stale, version="2")).status_code == 303
    assert (await jobs_of(house, ada))[0].job.name == "Mine"
    assert (await ada.post(f"/jobs/{job.id}", **stale, version="new")).status_code == 422


async def test_it_is_paused_and_goes_on(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    back = await ada.post(f"/jobs/{job.id}/toggle", version="1", on="", back="/jobs?q=brief")
    assert back.headers["location"] == "/jobs?q=brief"
    assert (await house.jobs.get(ada.user, job.id)).job.next_at is None
    assert "<b>Paused.</b>" in (await ada.get(f"/jobs/{job.id}")).text
    assert (await ada.post(f"/jobs/{job.id}/toggle", version="1", on="1")).status_code == 409
    await ada.post(f"/jobs/{job.id}/toggle", version="2", on="1")
    assert (await house.jobs.get(ada.user, job.id)).job.next_at


async def test_a_job_whose_last_time_has_passed_is_over_and_not_on(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada, replace(BRIEF, when="2100-01-01 10:00"))
    await made(house, ada, replace(BRIEF, name="Daily"))
    assert job.next_at
    assert await house.runtime.db.repository(JobsRepository, ada.user.id).advance(
        job.id, job.next_at, job.version, None
    )
    page = (await ada.get("/jobs")).text
    assert re.search(r'On <span class="count">1</span>.*Over <span class="count">1</span>', page, re.DOTALL)
    assert f'id="toggle-{job.id}"' not in page
    assert page.count("Run now:") == 2
    assert re.findall(r'<tr id="job-(\w+)"', (await ada.get("/jobs?state=over")).text) == [job.id]
    own = (await ada.get(f"/jobs/{job.id}")).text
    assert "no more runs" in own
    assert "Pause:" not in own


async def test_a_run_by_hand_is_noted_and_shown(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    answer = await ada.post(f"/jobs/{job.id}/run")
    page = (await ada.get(answer.headers["location"])).text
    assert "queued" in page
    assert "manual" in page
    assert 'hx-trigger="load delay' in page, "the page looks again by itself"


async def test_a_run_that_waits_for_its_person_says_so(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    slot = await ran(house, ada, job)
    assert "your approval" not in (await ada.get(f"/jobs/{job.id}/runs")).text
    await house.runtime.db.repository(ApprovalsRepository, ada.user.id).ask(
        call_id="call-1",
        turn_id=slot.id,
        tool="cron_add",
        arguments_hash="",
        destination="this server",
        verb="Schedule",
        detail="",
        why="",
        risk="high",
        expires_at=house.runtime.clock() + timedelta(hours=1),
    )
    assert "your approval" in (await ada.get(f"/jobs/{job.id}/runs")).text


async def test_a_run_that_waits_in_line_says_so_on_every_page_of_its_job(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    await ada.post(f"/jobs/{job.id}/run")
    (run,) = await house.jobs.history(ada.user, job.id)
    await house.runtime.db.repository(SlotLineRepository).join([run.slot.id])
    for page in ("", "/runs", "/address", "/mail", "/lists"):
        assert "in line since" in (await ada.get(f"/jobs/{job.id}{page}")).text, page


async def test_a_deleted_job_comes_back(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    question = (await ada.get(f"/jobs/{job.id}/delete")).text
    action = re.search(r'action="(/jobs/\w+/delete\?version=\d+)"', question)
    assert action
    assert (await ada.post(f"/jobs/{job.id}/delete", version="9")).status_code == 409
    await ada.post(action.group(1))
    assert await jobs_of(house, ada) == ()
    undo = re.search(r'action="(/jobs/\w+/restore)"', (await ada.get("/jobs")).text)
    assert undo
    await ada.post(undo.group(1))
    assert [one.job.id for one in await jobs_of(house, ada)] == [job.id]


async def test_a_run_whose_chat_was_deleted_says_so_and_leads_nowhere(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    slot = await ran(house, ada, job)
    before = (await ada.get(f"/jobs/{job.id}/runs")).text
    for path in (f"/c/c-{job.id}/at/{slot.id.replace(':', '-')}", f"/c/c-{job.id}"):
        assert f'href="{path}"' in before
    await house.conversations.delete(ada.user, f"c-{job.id}")
    page = (await ada.get(f"/jobs/{job.id}/runs")).text
    assert "transcript was deleted" in page
    assert not re.search(rf'href="(/c/c-{job.id}|/runs/)', page)
    assert "result of 1" in page
    standing = (await jobs_of(house, ada))[0].job
    typed = fields(JobForm.of(standing), version=str(standing.version), name="Renamed")
    assert (await ada.post(f"/jobs/{job.id}", **typed)).status_code == 303


async def test_the_history_says_how_each_run_ended_and_who_was_told(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    slot = await ran(house, ada, job)
    failed_slot = await ran(house, ada, job, "failed", 2, "the provider said no")
    await ran(house, ada, job, "missed", 3, "Cortex was off")
    async with house.runtime.db.transaction(ada.user.id) as repository:
        told = NoticeValues(kind="job", title="Brief", text="done", subject_id=slot.id, is_tainted=False)
        await repository(NoticesRepository).add(notice_id(ada.user.id, f"slot:{slot.id}"), told, [Way(channel="email")])
        unsent = replace(told, subject_id=failed_slot.id)
        await repository(NoticesRepository).add(notice_id(ada.user.id, f"slot:{failed_slot.id}"), unsent)
    page = (await ada.get(f"/jobs/{job.id}/runs")).text
    for words in (
        "result of 1",
        "the provider said no",
        "Cortex was off",
        "$0.0200",
        "1.2k",
        "E-mail: queued",
    ):
        assert words in page
    assert f'href="/runs/{slot.id.replace(":", "-")}"' in page
    failed = (await ada.get(f"/jobs/{job.id}/runs?show=failed")).text
    assert failed_slot.why in failed
    assert "the page</span>" in failed, "told by the bell alone"
    assert "nobody</span>" not in failed
    assert "nobody</span>" in (await ada.get(f"/jobs/{job.id}/runs?show=missed")).text
    assert "result of 1" not in failed


async def test_a_long_history_is_turned_page_by_page(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    for hours in range(1, 53):
        await ran(house, ada, job, ago=hours)
    first = (await ada.get(f"/jobs/{job.id}/runs")).text
    assert first.count('<tr id="slot-') == 50
    older = re.search(r'href="(/jobs/\w+/runs\?before=[^"]+)"', first)
    assert older
    assert (await ada.get(older.group(1))).text.count('<tr id="slot-') == 2


async def test_bars_can_be_told_apart_without_colour(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    for ago, state in enumerate(("done", "failed", "missed", "done"), 1):
        await ran(house, ada, job, state, ago)
    page = (await ada.get("/jobs")).text
    strip = re.findall(r'aria-label="([^"]*)"', page[page.index('class="strip"') - 200 :])[0]
    assert all(count in strip for count in ("2 done", "1 failed", "1 missed", "newest: done"))
    strip = page[page.index('class="strip"') : page.index("</svg>", page.index('class="strip"'))]
    assert re.findall(r"#b-(\w+)", strip) == ["done", "missed", "failed", "done"]
    assert "$0.0200" in page


async def test_the_list_is_narrowed_by_state_and_words(house: Cortex, ada: Browser) -> None:
    brief = await made(house, ada)
    other = await made(house, ada, replace(BRIEF, name="Weekly <b>"))
    await house.jobs.enable(ada.user, other.id, 1, is_enabled=False)
    await ran(house, ada, brief, "failed")

    async def shown(query: str) -> set[str]:
        return set(re.findall(r'<tr id="job-(\w+)"', (await ada.get(f"/jobs{query}")).text))

    assert await shown("") == {brief.id, other.id}
    assert await shown("?state=enabled") == await shown("?state=failing") == {brief.id}
    assert await shown("?state=paused") == await shown("?q=weekly") == {other.id}
    assert "Nothing matches" in (await ada.get("/jobs?q=zebra")).text
    assert "Weekly &lt;b&gt;" in (await ada.get("/jobs")).text


async def test_a_crontab_is_read_line_by_line_and_the_chosen_ones_are_saved(house: Cortex, ada: Browser) -> None:
    text = "# Backup\n0 3 * * * /usr/bin/backup\nMAILTO=me\n@reboot start\n5 4 * * sun tidy\nnonsense"
    read = (await ada.post("/jobs/import/reading", text=text, time_zone="Europe/Berlin")).text
    for words in (
        "Every day at 03:00",
        "<b>Backup</b>",
        "has no environment",
        "there is no @reboot",
        "five fields",
    ):
        assert words in read
    assert re.findall(r'name="numbers" value="(\d+)" checked', read) == ["2", "5"]
    assert await jobs_of(house, ada) == ()
    nothing = await ada.post("/jobs/import", text=text, time_zone="Europe/Berlin")
    assert nothing.status_code == 422
    saved = await ada.post("/jobs/import", text=text, time_zone="Europe/Berlin", numbers="5")
    assert saved.headers["location"] == "/jobs?state=paused"
    (one,) = await jobs_of(house, ada)
    assert (one.job.expression, one.job.is_enabled, one.job.time_zone) == ("5 4 * * SUN", False, "Europe/Berlin")
    assert (await ada.post("/jobs/import/reading", text="# only words")).status_code == 422


async def test_a_member_reaches_nobody_elses_job(house: Cortex, ada: Browser, bob: Browser) -> None:
    job = await made(house, ada)
    paths = ("", "/runs", "/delete")
    answers = [await bob.get(f"/jobs/{job.id}{path}") for path in paths]
    answers += [await bob.post(f"/jobs/{job.id}{path}", **fields(BRIEF, version="1")) for path in ("", "/preview")]
    answers += [
        await bob.post(f"/jobs/{job.id}/{verb}", version="1") for verb in ("run", "toggle", "delete", "restore")
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert "Brief" not in (await bob.get("/jobs")).text
    assert (await house.jobs.get(ada.user, job.id)).job == job
    assert (await bob.post("/jobs/new", **fields(BRIEF))).status_code == 303, "a member has jobs too"


async def test_a_thousand_jobs_with_ten_thousand_runs_are_shown(house: Cortex, ada: Browser) -> None:
    job = await made(house, ada)
    slot = await ran(house, ada, job, "missed", why="for the test")
    jobs = [replace(job, id=f"job{number}", name=f"Job {number:04}") for number in range(1000)]
    times = [slot.due_at - timedelta(days=day) for day in range(10)]
    runs = [replace(slot, id=slot_id(one.id, at), job_id=one.id, due_at=at) for one in jobs for at in times]
    async with house.runtime.db.transaction(ada.user.id) as repository:
        session = repository(JobsRepository).session
        await session.execute(insert(JobTable), [as_dict(one) for one in jobs])
        await session.execute(insert(SlotTable), [as_dict(one) for one in runs])
    page = (await ada.get("/jobs")).text
    assert page.count('<tr id="job-') == 40
    assert page.count(f"{slot.why}</title>") >= 39 * 10
    assert "page=2" in page
    assert (await ada.get("/jobs?page=26")).text.count('<tr id="job-') == 1
    assert (await ada.get("/jobs?q=0042")).text.count('<tr id="job-') == 1
