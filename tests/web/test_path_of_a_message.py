"""How much of the code a message passes, from its form until its answer is done and on the page: never more."""

from pathlib import Path

from tests.paths import Most, Walk
from tests.scripted_server import ScriptedServer, rule
from tests.web import conftest
from tests.web.streams import following
from tests.web.talks import talking_house
from web.app import create_app

# Gives a chat its title once its first answer is on the page: after the end of the way, whenever it comes to it.
NAMES_LATER = "ModelTitles.name_chats"
# With the look for what works elsewhere, as the page comes, at its begin and its end: the word near the person's name.
MOST = Most(modules=155, sessions=25, commits=12)


async def test_a_message_stays_on_its_path(tmp_path: Path, scripted: ScriptedServer) -> None:
    with Walk("Scheduler.keep_time", "JobRuns.look_after_slots", NAMES_LATER) as walk:
        async with talking_house(tmp_path / "home", scripted) as talks:
            scripted.rules = [rule(".", "Water the fern.")]
            app = create_app(talks.living.cortex)
            async with conftest.browser(app, talks.held.token) as http:
                for text in ("what does the fern need", "which plants need water", "and what does the moss need"):
                    cid = await talks.living.conversation()
                    async with following(app, http, f"/c/{cid}/events?after=0") as page:
                        await page.until("event: ready")
                        with walk.counted() as way:
                            await http.post(f"/c/{cid}/messages", data={"text": text})
                            await page.until("event: ended")
    MOST.hold(way)
