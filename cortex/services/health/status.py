"""How the server is doing, a line a fact: what `cortex_status` tells an admin. No secret among them."""

from dataclasses import dataclass
from datetime import datetime

from cortex import VERSION
from cortex.services.health.doctor import Doctor
from cortex.services.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusService:
    """Implements the `Status` port."""

    runtime: Runtime
    doctor: Doctor
    started_at: datetime

    async def lines(self) -> tuple[str, ...]:
        """Version, time up, database, then the doctor's findings."""
        up_s = (self.runtime.clock() - self.started_at).total_seconds()
        kind = "PostgreSQL" if self.runtime.db.is_postgresql else "SQLite"
        head = (
            f"Cortex {VERSION}, up {up_s / 3600:.1f} h, {kind}, {len(await self.runtime.runner.unfinished())} runs open"
        )
        findings = await self.doctor.examine()
        return (head, *(f"{item.name}: {item.state}. {item.text}" for item in findings))
