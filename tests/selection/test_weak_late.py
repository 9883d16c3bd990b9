"""A small model chooses worse among many tools, and reads each of them: it is told fewer late ones than others."""

from msgspec.structs import replace

from cortex.base.model import Profile
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput, RoleView, Snapshot
from tests.bench.ground import LOCAL

ROLE = RoleView(name="admin", tools=("all",))
LATER = "post in the team room that the numbers are down"


def noted(snapshot: Snapshot, profile: Profile) -> set[str]:
    """The late tools that the second message brings."""
    ready = tuple(entry.name for entry in snapshot.entries)
    given = PlanInput(
        snapshot=snapshot, ready=ready, role=ROLE, is_admin=True, message="turn off the kitchen light", profile=profile
    )
    first = plan(replace(given, fixed_tokens=4_000, turn="t1"))
    return set(plan(replace(given, message=LATER, fixed_tokens=4_200, turn="t2", memory=first.memory)).noted)


def test_a_weak_model_is_told_fewer_late_tools_and_among_them_what_is_wanted(shipped: Snapshot) -> None:
    weak, strong = noted(shipped, LOCAL), noted(shipped, replace(LOCAL, strength="strong"))
    assert weak < strong
    assert "nc_talk_send" in weak
