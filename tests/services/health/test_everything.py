"""Everything that a person owns as one archive: all of it, nothing of anybody else's, and nothing that opens a door."""

import io
import json
import re
import zipfile

from cortex.services.jobs.forms import JobForm
from cortex.storage.owned import LEFT_OUT
from cortex.storage.schema import Table
from tests.living_house import PASSWORD, LivingHouse

KEY = "sk-very-secret-model-key"
DOORS = re.compile(r"token$|digest|secret|password|sealed|^auth$|endpoint|address")
HELD_BACK = {("api_tokens", "digest"), ("hooks", "address"), ("push_devices", "endpoint"), ("push_devices", "auth")}
HARMLESS = {
    ("address_books", "token"),
    ("calendar_accounts", "addresses"),
    ("mail_accounts", "address"),
    ("calendars", "token"),
    ("hooks", "needs_secret"),
    ("rounds", "endpoint"),
    ("rounds", "system_digest"),
    ("rounds", "tools_digest"),
    ("texts", "digest"),
}


async def test_all_that_is_theirs_is_in_it_and_nothing_else(house: LivingHouse) -> None:
    cortex, ada, bob = house.cortex, house.admin, house.member
    cid = await house.conversation()
    await house.say(cid, "add truffles to my shopping list")
    await cortex.memory.add(ada, "Ada likes truffles.")
    job = await cortex.jobs.add(ada, JobForm(name="Truffles", prompt="Look.", when="every day at 7"))
    hook_secret = await cortex.hooks.open(ada, job.id, needs_secret=True)
    hook = await cortex.hooks.get(ada, job.id)
    token = await cortex.api_tokens.make(ada, {"name": "p", "role": "orchestrator"})
    form = {"name": "m", "provider": "openai", "model": "s", "base_url": "http://127.0.0.1:9/v1", "api_key": KEY}
    await cortex.models.save(ada, form)
    home = cortex.homes.home_of(ada.id)
    await home.write("notes/truffles.md", "# Where they are")
    (home.path / "notes" / "link.md").symlink_to("/etc/hostname")
    await cortex.tasks.create(bob, "Bob's own pears")
    path = await cortex.belongings.archive(ada)
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name).decode() for name in archive.namelist()}

    def rows(name: str) -> list[dict[str, object]]:
        return [json.loads(line) for line in files[f"data/{name}.jsonl"].splitlines()]

    assert [row["title"] for row in rows("tasks")] == ["truffles"]
    assert rows("jobs")[0]["name"] == "Truffles"
    assert rows("api_tokens")[0]["name"] == "p"
    assert any("truffles" in str(row["text"]) for row in rows("facts"))
    assert "truffles" in files[f"conversations/{cid}.md"]
    assert files["files/notes/truffles.md"] == "# Where they are"
    assert "files/notes/link.md" not in files
    events = await house.events(cid)
    assert [row["payload"] for row in rows("events")] == [event.payload for event in events]
    assert [row["receipt"] for row in rows("plans")] == await house.receipts(cid)
    assert all(re.search(r"'digest': '\w{24}'", str(row["given"])) for row in rows("plans"))
    assert all("packed" not in row for row in rows("plans"))
    whole = "\n".join(files.values())
    assert hook is not None
    for secret in (KEY, token, hook_secret, hook.address, PASSWORD, "$argon2", "pears"):
        assert secret not in whole
    again = await cortex.belongings.archive(ada)
    assert (path.exists(), again.exists()) == (False, True)


def test_every_table_of_persons_is_in_it_or_left_out_for_a_reason() -> None:
    tables = Table.metadata.tables
    of_persons = {
        name
        for name, table in tables.items()
        if any(key.target_fullname == "accounts.id" and key.ondelete == "CASCADE" for key in table.foreign_keys)
    }
    owned = {name for name, table in tables.items() if "owner_id" in table.c}
    assert of_persons - owned - LEFT_OUT == set()
    found = {(name, one.name) for name in owned - LEFT_OUT for one in tables[name].c if DOORS.search(one.name)}
    assert found == HELD_BACK | HARMLESS
