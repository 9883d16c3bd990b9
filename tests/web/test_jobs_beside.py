"""The form of a job that stands beside appointments: read while it is typed, saved, shown until one comes."""

from cortex.app import Cortex
from tests.dav_servers import DavServer, event
from tests.web.conftest import Browser
from tests.web.test_calendar import TIMES, connect
from tests.web.test_calendar import house as house
from tests.web.test_calendar import server as server

WHEN = "an hour before each appointment named periodontist"
FORM = {"name": "Leave", "kind": "message", "prompt": "Time to leave.", "time_zone": "UTC"}


async def test_a_job_is_read_with_its_appointments_and_waits_where_there_is_none(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    refused = (await ada.post("/jobs/new", **FORM, when=WHEN)).text
    assert "You see no calendar that a job could follow. Connect one on the page Calendar." in refused
    url = server.make("beside")
    account = await connect(house, ada, server)
    empty = (await ada.post("/jobs/preview", **FORM, when=WHEN)).text
    assert "No such appointment is to come yet. The job waits for one." in empty
    saved = await ada.post("/jobs/new", **FORM, when=WHEN)
    assert saved.status_code == 303, saved.text
    page = (await ada.get(saved.headers["location"].partition("?")[0])).text
    assert f'value="{WHEN}"' in page
    (job,) = (await house.jobs.list(ada.user)).jobs
    assert job.job.next_at is not None, "it is looked at once, for what came meanwhile"
    for armed in await house.job_runs.armed(job.job.next_at):
        await house.job_runs.fire(armed)
    assert "no such appointment yet" in (await ada.get("/jobs")).text
    server.put(url, "one", *event("one", "Periodontist", *TIMES))
    await house.calendar_sync.sync(ada.user.id, account)
    found = (await ada.post("/jobs/preview", **FORM, when=WHEN)).text
    assert "08:00: Periodontist" in found
