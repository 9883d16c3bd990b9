"""Every table of Cortex, a class each. Queries stand in the repositories, history in `migrations/`."""

from cortex.storage.schema.accounts import (
    AccountTable,
    AttemptTable,
    AuditTable,
    LoginTable,
    PreferenceTable,
    SecretTable,
    SetupLinkTable,
)
from cortex.storage.schema.calls import ApprovalTable, CallTable, GrantTable, UndoTable
from cortex.storage.schema.conversations import (
    ConversationTable,
    EventTable,
    MessageTable,
    PlanTable,
    SummaryTable,
    TurnTable,
)
from cortex.storage.schema.learning import LearningAnswerTable, LearningCaseTable, RefitTable
from cortex.storage.schema.tasks import TaskTable
from cortex.storage.schema.tools import CounterTable, ToolCaseTable, ToolSettingTable, ToolWordTable
from cortex.storage.schema.usage import BudgetTable, RoundTable, TextTable
from cortex.storage.table import Table

__all__ = [
    "AccountTable",
    "ApprovalTable",
    "AttemptTable",
    "AuditTable",
    "BudgetTable",
    "CallTable",
    "ConversationTable",
    "CounterTable",
    "EventTable",
    "GrantTable",
    "LearningAnswerTable",
    "LearningCaseTable",
    "LoginTable",
    "MessageTable",
    "PlanTable",
    "PreferenceTable",
    "RefitTable",
    "RoundTable",
    "SecretTable",
    "SetupLinkTable",
    "SummaryTable",
    "Table",
    "TaskTable",
    "TextTable",
    "ToolCaseTable",
    "ToolSettingTable",
    "ToolWordTable",
    "TurnTable",
    "UndoTable",
]
