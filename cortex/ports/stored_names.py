"""The names under which runs are kept: steps, the values they return, the errors they raise.

They stand in every engine.db: a class or a method may be renamed, its name here never, and none is used again for
something else. A value or an error that is not listed here cannot leave a step.
"""

from enum import StrEnum
from typing import Any

from cortex.base import errors, messages, turn
from cortex.ports import loop


class StepName(StrEnum):
    """The names under which a run's steps are kept."""

    OPEN = "Openings.open"
    STEER = "Telling.steer"
    SAY = "Telling.say"
    COMMAND = "PlainCommands.command"
    PLAN = "Planning.plan"
    ANSWER = "Thinking.answer"
    DECIDE = "Executor.decide"
    SETTLE = "ApprovalsService.settle"
    PERFORM = "Executor.perform"
    CLOSE = "Endings.close"
    REFUSE = "Endings.refuse"


VALUES: dict[str, type[Any]] = {
    "Text": messages.Text,
    "Picture": messages.Picture,
    "Thinking": messages.Thinking,
    "ToolCall": messages.ToolCall,
    "ToolResult": messages.ToolResult,
    "Opaque": messages.Opaque,
    "Reveal": messages.Reveal,
    "Message": messages.Message,
    "ToolSchema": messages.ToolSchema,
    "Usage": messages.Usage,
    "Turn": turn.Turn,
    "Need": turn.Need,
    "RoundPlan": turn.RoundPlan,
    "Reply": turn.Reply,
    "Decision": turn.Decision,
    "Performed": turn.Performed,
    "Outcome": turn.Outcome,
    "Past": turn.Past,
    "PlainCommand": turn.PlainCommand,
    "Request": loop.Request,
    "Delta": loop.Delta,
    "Finished": loop.StreamEnd,
    "Standing": loop.CallFacts,
    "CallRecord": loop.CallRecord,
    "UndoOffer": loop.UndoOffer,
    "Ending": loop.CallEnding,
    "Plea": loop.ApprovalRequest,
}

ERRORS: dict[str, type[errors.CortexError]] = {
    "CortexError": errors.CortexError,
    "UserError": errors.UserError,
    "NotAllowed": errors.NotAllowed,
    "DatabaseUnavailable": errors.DatabaseUnavailable,
    "NotFound": errors.NotFound,
    "Conflict": errors.Conflict,
    "Throttled": errors.Throttled,
    "ToolFailed": errors.ToolFailed,
    "ToolRetry": errors.ToolRetry,
    "ProviderError": errors.ProviderError,
    "EncoderFailed": errors.EncoderFailed,
    "DeliveryError": errors.DeliveryError,
    "ConfigError": errors.ConfigError,
}
