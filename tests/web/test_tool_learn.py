"""What use teaches, on the admin's page: whose words are shown, what an answer changes, how each is undone."""

import re

import pytest

from cortex.app import Cortex
from cortex.base.crypto import wording_key
from cortex.base.record import as_dict
from cortex.selection.words import text
from cortex.services.tools.own_weights import digest_of, rests_on
from cortex.services.turns.tool_outcomes import SHARES
from cortex.services.workshop.refits import Figure, Report
from cortex.storage.audit import AuditRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.learning import AllCasesRepository, CasesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.refits import RefitsRepository
from cortex.storage.tool_settings import ToolSettingsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from tests.web.marks import marks
from tests.web.test_tools import sent

PLACE = "/admin/tools/learn"
SAID = "zorblax frobnication please"
TOOL = "task_create"
SAME = Figure(recall=1.0, tools=2.0)
REPORT = as_dict(
    Report(
        cases=8,
        unknown=0,
        own_judged=2,
        own_before=SAME,
        own_after=SAME,
        shipped_judged=9,
        shipped_before=SAME,
        shipped_after=SAME,
    )
)


async def needed(house: Cortex, person: Browser, said: str, *, tool: str = TOOL, times: int = 1) -> str:
    """Turns in which this message needed a tool that was not sent; the wording's name."""
    db, user = house.runtime.db, person.user.id
    conversation = (
        await db.repository(ConversationsRepository, user).create(
            "orchestrator", "auto", "Talk", is_title_tainted=False
        )
    ).id
    key = wording_key(house.settings.secret_key, text.normal(said))
    for number in range(times):
        turn = f"{conversation}-{number}"
        await db.repository(TurnsRepository, user).create(NewTurn(turn, conversation, said, **PLAIN_TURN))
        shares = await db.repository(PreferencesRepository, user).get(SHARES, False)
        await db.repository(CasesRepository, user).add(
            turn,
            "orchestrator",
            needed={tool: "rescued"},
            called=(tool,),
            unused=("git_log",),
            text_hash=key,
            text=said if shares else None,
        )
    return key


async def page(person: Browser) -> str:
    return re.sub(r"\s+", " ", (await person.get(PLACE)).text)


async def test_another_persons_words_are_not_shown_without_consent(house: Cortex, ada: Browser, bob: Browser) -> None:
    await needed(house, bob, SAID, times=2)
    shown = await page(ada)
    assert SAID not in shown
    assert "needed 2 times" in shown
    assert "2 times in" in shown
    assert all(case.text is None for case in await house.runtime.db.repository(AllCasesRepository).recent(9))


async def test_shared_words_are_shown_until_the_consent_is_taken_back(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await bob.post("/account/data", shares="1")
    key = await needed(house, bob, SAID)
    assert SAID in await page(ada)
    await bob.post("/account/data")
    assert SAID not in await page(ada)
    assert (await house.runtime.db.repository(AllCasesRepository).recent(9))[0].text is None
    answer = await ada.post(PLACE, do="example", tool=TOOL, wording=key)
    assert answer.status_code == 404
    assert not await house.tool_settings.words("tasks")


async def test_an_admin_sees_words_of_their_own(house: Cortex, ada: Browser) -> None:
    await needed(house, ada, SAID, times=3)
    shown = await page(ada)
    assert SAID in shown
    assert "3 times: 3 \u00d7" in shown


async def test_an_accepted_wording_is_an_example_at_once_and_undone_it_is_open_again(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    key = await needed(house, ada, SAID)
    assert TOOL not in await sent(house, bob, SAID)
    assert (await ada.post(PLACE, do="example", tool=TOOL, wording=key)).status_code == 303
    assert TOOL in await sent(house, bob, SAID)
    shown = await page(ada)
    assert f"Example: {SAID}" in shown
    assert "Nothing to learn" in shown
    answer = re.search(r'name="answer" value="([^"]+)"', shown)
    assert answer
    await ada.post(PLACE, do="undo", answer=answer[1])
    assert TOOL not in await sent(house, bob, SAID)
    assert "Add as example" in await page(ada)
    actions = [entry.action for entry in await house.runtime.db.repository(AuditRepository).list(subject="tasks")]
    assert actions == ["tool.words", "tool.words"]


async def test_a_wording_that_two_tools_were_accepted_for_keeps_the_one_that_is_not_undone(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    key = await needed(house, ada, SAID)
    await needed(house, ada, SAID, tool="task_list")
    for tool in (TOOL, "task_list"):
        await ada.post(PLACE, do="example", tool=tool, wording=key)
    assert {TOOL, "task_list"} <= set(await sent(house, bob, SAID))
    last, first = re.findall(r'name="answer" value="([^"]+)"', await page(ada))
    await ada.post(PLACE, do="undo", answer=last)
    assert "task_list" not in await sent(house, bob, SAID)
    assert TOOL in await sent(house, bob, SAID)
    await ada.post(PLACE, do="undo", answer=first)
    assert not await house.tool_settings.words("tasks")


async def test_a_phrase_that_wordings_share_is_suggested_and_settles_them_all(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await needed(house, ada, "frobnicate the zorblax on monday")
    await needed(house, ada, "please frobnicate the zorblax")
    shown = await page(ada)
    assert marks(shown).values["phrase"] == "frobnicate the zorblax"
    await ada.post(PLACE, do="phrase", tool=TOOL, phrase="frobnicate the zorblax")
    assert TOOL in await sent(house, bob, "now frobnicate the zorblax twice")
    assert "Nothing to learn" in await page(ada)


async def test_what_was_turned_down_is_not_suggested_again(house: Cortex, ada: Browser) -> None:
    key = await needed(house, ada, SAID)
    await ada.post(PLACE, do="down", tool=TOOL, wording=key)
    await needed(house, ada, SAID)
    shown = await page(ada)
    assert "Nothing to learn" in shown
    assert "Dismissed" in shown
    assert not await house.tool_settings.words("tasks")


async def test_tools_sent_for_nothing_are_counted(house: Cortex, ada: Browser, bob: Browser) -> None:
    await needed(house, bob, SAID, times=4)
    assert re.search(r"git_log</a> <small>4 \u00d7", await page(ada))


async def test_a_phrase_without_a_word_is_refused_where_it_was_typed(house: Cortex, ada: Browser) -> None:
    await needed(house, ada, SAID)
    answer = await ada.post(PLACE, do="phrase", tool=TOOL, phrase="…")
    assert answer.status_code == 422
    assert "Enter a phrase." in answer.text


@pytest.mark.parametrize("do", ["", "example", "phrase", "down", "undo", "refit", "choose"])
async def test_a_member_can_open_and_do_nothing_here(house: Cortex, bob: Browser, do: str) -> None:
    assert (await bob.get(PLACE)).status_code == 403
    assert (await bob.post(PLACE, do=do, tool=TOOL, phrase="x")).status_code == 403


async def test_a_wording_that_was_taught_and_also_brought_tools_for_nothing_is_learned_from_once(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await bob.post("/account/data", shares="1")
    key = await needed(house, bob, SAID)
    await ada.post(PLACE, do="example", tool=TOOL, wording=key)
    found = await house.refits.cases()
    assert [(case.text, case.tools, case.not_tools) for case in found] == [(SAID, (TOOL,), ("git_log",))]


async def test_too_few_messages_are_no_ground_for_a_refit(ada: Browser) -> None:
    answer = await ada.post(PLACE, do="refit")
    assert answer.status_code == 422
    assert "8 are needed" in answer.text


async def test_a_refit_is_numbered_in_force_at_once_and_can_be_undone(house: Cortex, ada: Browser) -> None:
    said = ("feed", "wake", "warm", "cool", "brush", "weigh", "wash", "calm")
    examples = "\n".join(f"{verb} the dragon [scratch_write]" for verb in said)
    await ada.post("/admin/tools/in/scratchpad", examples=examples, do="save")
    shipped = await house.tools.snapshot()
    assert (await ada.post(PLACE, do="refit")).status_code == 303
    own = await house.tools.snapshot()
    assert own.weights.startswith("1:")
    assert own.version != shipped.version
    shown = await page(ada)
    assert "in use" in shown
    assert "8 messages" in shown
    await ada.post(PLACE, do="choose", number=0)
    assert (await house.tools.snapshot()).version == shipped.version
    await ada.post(PLACE, do="choose", number=1)
    assert (await house.tools.snapshot()).weights == own.weights
    actions = [entry.action for entry in await house.runtime.db.repository(AuditRepository).list(subject="1")]
    assert actions == ["refit.chosen", "refit.made"]


async def test_a_refit_of_an_earlier_version_is_not_used_and_its_admin_is_told(
    house: Cortex, ada: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    """Earlier versions kept the utterances alone, without the form of the weights."""
    shipped = await house.tools.snapshot()
    utterances = rests_on().partition(" ")[2]
    async with house.runtime.db.transaction() as repository:
        number = await repository(RefitsRepository).add(utterances, digest_of(b"old"), b"old", REPORT, ada.user.id)
        await repository(RefitsRepository).choose(number)
        await repository(ToolSettingsRepository).changed()
    assert (await house.tools.snapshot()).weights == shipped.weights
    assert "older model" in caplog.text
    told = "Refit 1 was made for an older model"
    shown = await page(ada)
    assert told in shown
    assert "or undo this" in shown
    assert "in use" not in shown
    assert [one.mend for one in await house.doctor.examine(of=ada.user) if told in one.text]
    assert told in (await ada.post(PLACE, do="choose", number=1)).text
    await ada.post(PLACE, do="choose", number=0)
    assert not [one for one in await house.doctor.examine(of=ada.user) if told in one.text]


async def test_a_refit_that_cannot_be_read_leaves_the_shipped_model_to_choose(
    house: Cortex, ada: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    shipped = await house.tools.snapshot()
    async with house.runtime.db.transaction() as repository:
        number = await repository(RefitsRepository).add(rests_on(), digest_of(b"old"), b"old", REPORT, ada.user.id)
        await repository(RefitsRepository).choose(number)
        await repository(ToolSettingsRepository).changed()
    assert (await house.tools.snapshot()).weights == shipped.weights
    assert "is damaged" in caplog.text


async def test_a_refit_that_makes_things_worse_is_refused_with_its_figures(house: Cortex, ada: Browser) -> None:
    snapshot = await house.tools.snapshot()
    wrong = [each.text for domain in snapshot.domains if domain.name != "scratchpad" for each in domain.examples[:10]]
    lines = "\n".join(f"{said} [scratch_write]" for said in wrong)
    await ada.post("/admin/tools/in/scratchpad", examples=lines, do="save")
    before = await house.tools.snapshot()
    answer = await ada.post(PLACE, do="refit")
    assert answer.status_code == 422
    assert "was refused" in answer.text
    assert "Own, held back:" in answer.text
    assert (await house.tools.snapshot()).version == before.version
