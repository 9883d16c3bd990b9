"""The audit log in words: what a row tells, as the rest of a sentence that begins with who did it.

Pure; an action that is not known here is read off its own name. Used by the page of the log.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from msgspec import Struct

from cortex.services.health.audit_log import AuditRow

_ACTORS = {"": "Cortex", "command": "The command line"}
_SUBJECT = "{}"
# Each with a place for what it is about; where that is empty the place goes.
WORDS: Mapping[str, str] = MappingProxyType(
    {
        "access.ended": "ended what let somebody in as {}",
        "account.deleted_by": "deleted the account {}",
        "account.invited_by": "invited {}",
        "audit.accepted": "accepted the log as it was",
        "audit.exported": "exported this log",
        "budget.removed": "removed the budget of {}",
        "budget.set": "set the budget of {}",
        "calendar.connected": "connected calendars of {}",
        "calendar.feed_made": "made a calendar address of reminders, jobs and tasks for {}",
        "calendar.feed_removed": "took away the calendar address of {}",
        "calendar.removed": "removed the calendars of {}",
        "calendar.shared": "changed who sees the calendar {}",
        "call.intended": "called the tool {}",
        "chat.shared": "let {} read a chat",
        "contacts.shared": "changed who sees the address book {}",
        "coding.folder_allowed": "let coding agents work in {}",
        "coding.folder_revoked": "took back that coding agents work in {}",
        "coding.merged": "merged a coding agent's work into {}",
        "database.asked": "queried the database {}",
        "database.browsed": "looked into the database {}",
        "grant.revoked": "took back a permission for {}",
        "integration.removed": "removed the integration {}",
        "integration.saved": "saved the integration {}",
        "integration.shared": "changed who may use {}",
        "integration.switched": "switched the integration {}",
        "job.address_made": "gave the job {} a web address",
        "job.address_removed": "took away the web address of the job {}",
        "job.lists": "changed which shared lists the job {} may write to",
        "job.mail_removed": "took mails away from the job {}",
        "job.mail_set": "had mails begin the job {}",
        "learning.agreed": "accepted a suggestion for {}",
        "learning.taken_back": "took back an answer to a suggestion for {}",
        "learning.turned_down": "turned down a suggestion for {}",
        "login": "logged in",
        "login.confirm_failed": "gave a wrong password when asked again",
        "login.confirmed": "confirmed with the password",
        "login.failed": "failed to log in as {}",
        "login.link": "made a link to log in for {}",
        "login.revoked": "ended a login of {}",
        "logout": "logged out",
        "mail.connected": "connected the mail account {}",
        "mail.removed": "removed the mail account {}",
        "mcp.allowed": "allowed tools of the MCP server {}",
        "mcp.changed": "switched tools off that had changed on the MCP server {}",
        "mcp.forbidden": "forbade tools of the MCP server {}",
        "mcp.installed": "installed the MCP server {}",
        "messenger.linked": "linked an account at {}",
        "messenger.unlinked": "ended the link to {}",
        "model.shared": "shared the model {}",
        "model.unshared": "stopped sharing the model {}",
        "plugin.allowed": "allowed the plug-in {}",
        "plugin.revoked": "took back the plug-in {}",
        "push.rotated": "made {} anew",
        "refit.chosen": "chose the tool selection {}",
        "refit.made": "fitted the tool selection anew: {}",
        "refit.refused": "tried to fit the tool selection anew; it came out worse",
        "role.changed": "changed the role {}",
        "role.made": "made the role {}",
        "role.models": "changed the models of the role {}",
        "role.removed": "removed the role {}",
        "role.restored": "brought the role {} back",
        "secret.given_up": "gave up the secret {}",
        "server.restart": "restarted Cortex",
        "server.updated": "updated Cortex",
        "setting.kept": "confirmed the setting {}",
        "setting.set": "changed the setting {}",
        "setting.taken_back": "put the setting {} back",
        "setting.unset": "took the setting {} away",
        "time_zone.own": "chose a time zone",
        "token.extended": "extended the token {}",
        "token.made": "made the token {}",
        "token.mode": "changed what the token {} may do",
        "token.revoked": "revoked the token {}",
        "token.words": "changed how the token {} reads texts",
        "tokens.became_outside": "began to count texts of older tokens as external content",
        "tool.case_added": "added the trial {}",
        "tool.case_removed": "removed the trial {}",
        "tool.changed": "changed the tool {}",
        "tool.tried": "tried the tool {}",
        "tool.words": "changed the examples of {}",
        "trace.read": "read a trace of {}",
        "user.added": "added the account {}",
        "user.closed": "closed the account {}",
        "user.deleted": "deleted the account {}",
        "user.deleting": "began to delete the account {}",
        "user.opened": "opened the account {} again",
        "user.password": "changed the password of {}",
        "user.password_by_link": "set a new password by a link for {}",
        "user.rank": "changed the rank of {}",
        "user.reset": "made a link for a new password of {}",
        "user.setup": "set Cortex up as {}",
        "work.released": "let work go on",
        "work.stopped": "stopped all work",
    }
)


class ToldRow(Struct, frozen=True, kw_only=True):
    """A row in words: who, and the sentence around what it is about. `json`: all of the row, to read."""

    number: int
    at: datetime
    who: str
    before: str
    subject: str
    after: str
    json: str


def tell(row: AuditRow, names: Mapping[str, str]) -> ToldRow:
    """Put a row in words. names: of the accounts, by id."""
    before, subject, after = told(row.action, names.get(row.subject, row.subject))
    who = names.get(row.actor) or _ACTORS.get(row.actor, row.actor)
    if row.action == "login.failed" and not row.actor:
        who = "Somebody"
    values = {name: getattr(row, name) for name in ("number", "actor", "action", "subject", "hash")}
    shown = json.dumps({**values, "detail": json.loads(row.detail)}, indent=2, ensure_ascii=False)
    return ToldRow(number=row.number, at=row.at, who=who, before=before, subject=subject, after=after, json=shown)


def told(action: str, subject: str) -> tuple[str, str, str]:
    """Tell what a row says, in three: the words before what it is about, that, and the words after."""
    words = WORDS.get(action) or f"{action.replace('.', ': ').replace('_', ' ')} {_SUBJECT}"
    before, place, after = words.partition(_SUBJECT)
    if not place or not subject:
        return f"{before.rstrip(' :')}{after}", "", ""
    return before, subject, after
