"""Every table of Cortex, a class each. Queries stand in the repositories, history in `migrations/`."""

from cortex.storage.schema.accounts import (
    AccountTable,
    AttemptTable,
    AuditTable,
    HaltTable,
    LoginTable,
    PreferenceTable,
    SecretTable,
    ServerSecretTable,
    SetupLinkTable,
)
from cortex.storage.schema.api import ApiRequestTable, ApiTokenTable
from cortex.storage.schema.calls import ApprovalTable, CallTable, GrantTable, UndoTable
from cortex.storage.schema.coding import CodingFolderTable, CodingRunTable
from cortex.storage.schema.conversations import (
    ConversationTable,
    EventTable,
    MessageTable,
    PlanTable,
    SummaryTable,
    TurnTable,
)
from cortex.storage.schema.documents import DocumentPageTable, DocumentTable
from cortex.storage.schema.hooks import HookDeliveryTable, HookTable
from cortex.storage.schema.integrations import IntegrationTable
from cortex.storage.schema.journals import EntryVersionTable, JournalEntryTable, JournalTable
from cortex.storage.schema.learning import LearningAnswerTable, LearningCaseTable, RefitTable
from cortex.storage.schema.mcp import McpToolTable
from cortex.storage.schema.memory import DistillMarkTable, FactTable, FactVersionTable
from cortex.storage.schema.models import SharedModelTable
from cortex.storage.schema.notices import (
    ActionLinkTable,
    DeliveryTable,
    NoticeTable,
    PushDeviceTable,
)
from cortex.storage.schema.tasks import TaskListMemberTable, TaskListTable, TaskTable
from cortex.storage.schema.time import JobTable, ReminderTable, SlotTable
from cortex.storage.schema.tools import CounterTable, ToolCaseTable, ToolSettingTable, ToolWordTable
from cortex.storage.schema.usage import BudgetTable, RoundTable, TextTable
from cortex.storage.table import Table

__all__ = [
    "AccountTable",
    "ActionLinkTable",
    "ApiRequestTable",
    "ApiTokenTable",
    "ApprovalTable",
    "AttemptTable",
    "AuditTable",
    "BudgetTable",
    "CallTable",
    "CodingFolderTable",
    "CodingRunTable",
    "ConversationTable",
    "CounterTable",
    "DeliveryTable",
    "DistillMarkTable",
    "DocumentPageTable",
    "DocumentTable",
    "EntryVersionTable",
    "EventTable",
    "FactTable",
    "FactVersionTable",
    "GrantTable",
    "HaltTable",
    "HookDeliveryTable",
    "HookTable",
    "IntegrationTable",
    "JobTable",
    "JournalEntryTable",
    "JournalTable",
    "LearningAnswerTable",
    "LearningCaseTable",
    "LoginTable",
    "McpToolTable",
    "MessageTable",
    "NoticeTable",
    "PlanTable",
    "PreferenceTable",
    "PushDeviceTable",
    "RefitTable",
    "ReminderTable",
    "RoundTable",
    "SecretTable",
    "ServerSecretTable",
    "SetupLinkTable",
    "SharedModelTable",
    "SlotTable",
    "SummaryTable",
    "Table",
    "TaskListMemberTable",
    "TaskListTable",
    "TaskTable",
    "TextTable",
    "ToolCaseTable",
    "ToolSettingTable",
    "ToolWordTable",
    "TurnTable",
    "UndoTable",
]
