"""What a question weighs: by what its deed does, whatever the class of its tool."""

from datetime import UTC, datetime

import pytest

from cortex.agent.records import HERE
from cortex.services.turns.approval_weight import weigh
from cortex.storage.approvals import ApprovalRow
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category
from cortex.tools import load

SHIPPED = load()
WHY = "Asked because this conversation contains external content"
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def asked(tool: str, **other: str) -> ApprovalRow:
    found = SHIPPED.get(tool)
    fields = {"risk": found.risk if found else "high", "destination": HERE, "detail": "Text: hello", "why": "", **other}
    return ApprovalRow(
        id="a",
        turn_id="t",
        conversation_id="c",
        call_id="k",
        tool=tool,
        arguments_hash="h",
        verb="Do it",
        readers="",
        state="asked",
        created_at=NOW,
        expires_at=NOW,
        answered_at=None,
        answered_by=None,
        continued_by=None,
        notify_at=None,
        **fields,
    )


@pytest.mark.parametrize(
    ("tool", "other", "weight"),
    [
        ("ha_call_service", {"risk": "medium"}, "low"),
        ("ha_call_service", {"risk": "medium", "why": WHY}, "high"),
        ("ha_call_service", {"risk": "high"}, "high"),
        ("task_create", {}, "low"),
        ("task_create", {"why": WHY}, "high"),
        ("task_create", {"detail": "a\nb\nc\nd\ne"}, "middle"),
        ("cron_add", {}, "middle"),
        ("file_write", {}, "middle"),
        ("cron_remove", {}, "low"),
        ("spawn_agent", {}, "middle"),
        ("spawn_agent", {"why": WHY}, "high"),
        ("email_send", {"destination": "ola@example.org"}, "high"),
        ("shell_exec", {}, "high"),
        ("cortex_restart", {}, "high"),
        ("web_read", {"destination": "example.org"}, "middle"),
        ("web_read", {"destination": "example.org", "why": WHY}, "high"),
        ("no_such_tool", {}, "high"),
    ],
)
def test_a_question_weighs_what_its_deed_does(tool: str, other: dict[str, str], weight: str) -> None:
    assert weigh(SHIPPED, asked(tool, **other)).weight == weight


def test_who_reads_it_says_whether_it_lasts_and_leaves() -> None:
    mail = weigh(SHIPPED, asked("email_send", destination="ola@example.org"))
    assert (mail.is_lasting, mail.leaves) == (True, True)
    light = weigh(SHIPPED, asked("ha_call_service", risk="medium"))
    assert (light.is_lasting, light.leaves) == (False, False)


@tool(words="Order {what}", spends=True)
async def moon_order(ctx: Ctx, what: str) -> str:
    """Order something.

    Args:
        what: The thing.
    """
    return what


def test_what_costs_money_asks_first_and_weighs_heavily() -> None:
    tasks = SHIPPED.category("tasks")
    assert tasks is not None
    category = Category(name=moon_order.category, summary="Orders", tools=(moon_order,), undo=tasks.undo)
    weighed = weigh(Registry([category]), asked("moon_order", risk="low"))
    assert (weighed.weight, weighed.spends, weighed.is_lasting) == ("high", True, False)
    assert moon_order.confirm
    assert moon_order.is_grave
