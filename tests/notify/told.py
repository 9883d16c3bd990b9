"""Notices to send in tests."""

from msgspec.structs import replace

from cortex.ports.channels import Action, Notice

PLAIN = Notice(
    id="d-1",
    kind="reminder",
    title="Water the plants",
    text="The fern first.",
    path="/reminders#r1",
    tag="reminder-r1",
    actions=(Action(kind="ack", path="/go/a1"), Action(kind="snooze", path="/go/s1", title="Snooze 10 min")),
    urgency="important",
    ttl_s=3_600,
    badge=3,
    is_private=False,
)
PRIVATE = replace(PLAIN, is_private=True)
CONTENT = ("Water", "plants", "fern", "reminder-r1", "Snooze 10", '"reminder"', ".reminder")
