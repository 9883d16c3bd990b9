"""The closed sets of jobs, their slots and reminders, as tables, services and pages share them. No rule stands here."""

from typing import Literal

TimingKind = Literal["at", "every", "cron", "called", "appointment"]
JobKind = Literal["prompt", "message", "call"]
NotifyOn = Literal["always", "failure", "change", "never"]
OnMiss = Literal["skip", "once", "catchup"]
Overlap = Literal["skip", "queue"]
SlotState = Literal["planned", "running", "done", "failed", "denied", "stopped", "missed", "skipped"]
SLOT_ENDS: tuple[SlotState, ...] = ("done", "failed", "denied", "stopped", "missed", "skipped")
ReminderState = Literal["planned", "due", "snoozed", "done"]
