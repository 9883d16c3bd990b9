"""Times on the pages say their zone where it is another than the reader's, and only there."""

from cortex.app import Cortex
from cortex.services.jobs.forms import JobForm
from tests.web.conftest import Browser

STRETCH = "stretch every monday at 08:00"


async def test_a_reminder_of_another_zone_says_so(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, STRETCH)
    addresses = ("/reminders", f"/reminders/{row.id}")
    for address in addresses:
        assert "08:00, UTC" not in (await ada.get(address)).text, "their own zone goes without saying"
    await house.accounts.set_time_zone(ada.user, "Europe/Berlin")
    for address in addresses:
        assert "08:00, UTC" in (await ada.get(address)).text


async def test_a_job_of_another_zone_says_so_also_while_it_is_paused(house: Cortex, ada: Browser) -> None:
    form = JobForm(name="News", prompt="hello", when="every day at 7", role="orchestrator")
    job = await house.jobs.add(ada.user, form)
    assert "Every day at 07:00<" in (await ada.get("/jobs")).text
    await house.accounts.set_time_zone(ada.user, "Europe/Berlin")
    assert "Every day at 07:00, UTC<" in (await ada.get("/jobs")).text
    await house.jobs.enable(ada.user, job.id, job.version, is_enabled=False)
    assert "Every day at 07:00, UTC<" in (await ada.get("/jobs")).text
