"""Approvals of everybody, for admins: what waits, grants in force, history. An admin takes away, and never allows.

A question is answered by the person it was put to. Of other people's an admin sees who, which tool and where to; the
arguments are theirs.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.records import HERE
from cortex.base.errors import NotFound
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_weight import Weighed, weigh
from cortex.storage.approvals import AllApprovalsRepository, AllGrantsRepository, GrantsRepository
from cortex.storage.approvals import OwnedApproval as OwnedApproval
from cortex.storage.approvals import OwnedGrant as OwnedGrant
from cortex.storage.audit import AuditRepository
from cortex.toolkit.registry import Registry

ONLY = "see other people's approvals"  # for admins
PAGE_ROWS = 50
THEIRS = "(theirs alone to see)"


class ApprovalPage(Struct, frozen=True, kw_only=True):
    """Questions, the newest first. `older`: pass it as `before` for those ahead of them, "" where there are none."""

    rows: Sequence[OwnedApproval]
    older: str


class ApprovalAdmin(Struct, frozen=True, kw_only=True):
    """Every method takes the admin who asks; NotAllowed for anybody else."""

    runtime: Runtime
    accounts: Accounts

    async def names(self, by: User) -> Mapping[str, str]:
        """The names of all accounts, by id."""
        by.must_be_admin(ONLY)
        return {one.id: one.name for one in await self.accounts.all_accounts()}

    async def waiting(self, by: User) -> Sequence[OwnedApproval]:
        """Return what waits for somebody's answer, oldest first."""
        by.must_be_admin(ONLY)
        return [
            _shown(by, row, self.runtime.registry)
            for row in await self.runtime.db.repository(AllApprovalsRepository).pending()
        ]

    def weigh(self, row: OwnedApproval) -> Weighed:
        """Weigh a question by what its deed does; of another person's the length of its words does not count."""
        return weigh(self.runtime.registry, row)

    async def grants(self, by: User) -> Sequence[OwnedGrant]:
        """Return what was allowed beyond single calls and is in force, the newest first."""
        by.must_be_admin(ONLY)
        return [_shown_grant(by, row) for row in await self.runtime.db.repository(AllGrantsRepository).list()]

    async def history(
        self, by: User, before: str = "", *, person: str = "", state: str = "", tool: str = ""
    ) -> ApprovalPage:
        """A page of all questions that there were, narrowed by what is given."""
        by.must_be_admin(ONLY)
        approvals = self.runtime.db.repository(AllApprovalsRepository)
        rows = await approvals.list(PAGE_ROWS + 1, before, owner_id=person, state=state, tool=tool)
        shown = [_shown(by, row, self.runtime.registry) for row in rows[:PAGE_ROWS]]
        return ApprovalPage(rows=shown, older=shown[-1].id if len(rows) > PAGE_ROWS else "")

    async def revoke(self, by: User, grant_id: str) -> None:
        """Take a standing yes back, of whomever; audited. NotFound where none is in force."""
        grant = next((one for one in await self.grants(by) if one.id == grant_id), None)
        if grant is None:
            raise NotFound("This permission does not exist.")
        async with self.runtime.db.transaction(grant.owner_id) as repository:
            await repository(GrantsRepository).revoke(grant_id)
            await repository(AuditRepository).add(by.id, "grant.revoked", grant.tool, {"of": grant.owner_id})


def _shown(by: User, row: OwnedApproval, registry: Registry) -> OwnedApproval:
    """Another person's without its arguments, which its words hold too."""
    if row.owner_id == by.id:
        return row
    tool = registry.get(row.tool)
    return replace(row, verb=tool.summary.rstrip(".") if tool else row.tool, detail=THEIRS)


def _shown_grant(by: User, row: OwnedGrant) -> OwnedGrant:
    """Where nothing leaves the server the destination is the call itself (`services/turns/approvals.py: scope_of`)."""
    is_call = " #" in row.destination
    return row if row.owner_id == by.id or not is_call else replace(row, destination=f"{HERE} {THEIRS}")
