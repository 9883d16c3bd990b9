"""Admin: the audit log, filtered and as a file. Nothing is changed here; it says whether the log's end still fits."""

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from cortex.base.errors import UserError
from cortex.services.accounts.people import AccountRow
from cortex.services.health.audit_log import MEND, AuditFilter, AuditRow, AuditVerdict
from web.audit_words import ToldRow, tell
from web.render import ADMIN, Context, NavEntry, described, zone_of
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
HREF = "/admin/audit"
NAV = NavEntry(
    title="Audit log",
    href=HREF,
    icon="log",
    order=80,
    under=ADMIN,
    about="Who changed what, in a log that cannot be altered unnoticed.",
)
KINDS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}
COLUMNS = ("number", "at", "person", "actor", "action", "subject", "detail", "previous_hash", "hash")
RUN_BY_SHEETS = ("=", "+", "-", "@", "\t", "\r")


class AuditContext(Context, frozen=True, kw_only=True):
    """The log."""

    rows: Sequence[ToldRow] = described("the rows that are meant in words, the newest first")
    older: int | None = described("`before` of the page of older ones, or None")
    verdict: AuditVerdict = described("whether the log still ends as it was last seen")
    mend: str = described("what to do where it does not")
    people: Sequence[AccountRow] = described("whom to filter by")
    kinds: Sequence[str] = described("what to filter by")
    wanted: Mapping[str, str] = described("the filter as it stands in the address")


@router.get(HREF)
async def show(
    visit: ReauthedAdminVisit,
    person: str = "",
    kind: str = "",
    since: str = "",
    until: str = "",
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """The newest rows that are meant."""
    people = await visit.services.accounts.all_accounts()
    error, which = "", AuditFilter()
    try:
        which = _filter(visit, people, person, kind, since, until)
    except UserError as refused:
        error = refused.message
    names = {one.id: one.name for one in people}
    page = await visit.services.audit_log.page(which, before)
    context = AuditContext(
        rows=[tell(row, names) for row in page.rows],
        older=page.older,
        verdict=await visit.services.audit_log.glance(),
        mend=MEND,
        people=people,
        kinds=await visit.services.audit_log.kinds(),
        wanted={"person": person, "kind": kind, "since": since, "until": until},
        error=error,
    )
    return await visit.show("audit.html", context, status=422 if error else 200)


@router.get(HREF + "/export")
async def export(
    visit: ReauthedAdminVisit,
    form: Literal["csv", "jsonl"] = "csv",
    person: str = "",
    kind: str = "",
    since: str = "",
    until: str = "",
) -> Response:
    """All rows that are meant as a file: a sheet, or a JSON value a line."""
    people = await visit.services.accounts.all_accounts()
    which = _filter(visit, people, person, kind, since, until)
    names = {one.id: one.name for one in people}
    headers = {"Content-Disposition": f'attachment; filename="cortex-audit.{form}"'}
    pieces = visit.services.audit_log.export(visit.user, which)
    first = await anext(pieces)  # a refusal comes before the answer begins
    return StreamingResponse(_written(form, first, pieces, names), media_type=KINDS[form], headers=headers)


async def _written(
    form: str, first: Sequence[AuditRow], rest: AsyncIterator[Sequence[AuditRow]], names: Mapping[str, str]
) -> AsyncIterator[str]:
    make = _as_csv if form == "csv" else _as_lines
    if form == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    yield make(first, names)
    async for rows in rest:
        yield make(rows, names)


def _as_csv(rows: Sequence[AuditRow], names: Mapping[str, str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        values = _values(row, names).values()
        writer.writerow([f"'{text}" if str(text).startswith(RUN_BY_SHEETS) else text for text in values])
    return out.getvalue()


def _as_lines(rows: Sequence[AuditRow], names: Mapping[str, str]) -> str:
    return "".join(json.dumps(_values(row, names), ensure_ascii=False) + "\n" for row in rows)


def _values(row: AuditRow, names: Mapping[str, str]) -> dict[str, str | int]:
    values = {name: getattr(row, name, "") for name in COLUMNS}
    return {**values, "at": row.at.isoformat(), "person": names.get(row.actor, "")}


def _filter(visit: Visit, people: Sequence[AccountRow], person: str, kind: str, since: str, until: str) -> AuditFilter:
    """The filter; days are the reader's own. UserError for a day that is none."""
    name = next((one.name for one in people if one.id == person), "")
    since_day, until_day = _day(visit, since, "since"), _day(visit, until, "until")
    return AuditFilter(
        person=person,
        name=name,
        kind=kind,
        since=_begin(visit, since_day),
        until=_begin(visit, until_day + timedelta(days=1) if until_day else None),
    )


def _begin(visit: Visit, day: date | None) -> datetime | None:
    return datetime.combine(day, time(), zone_of(visit.user)) if day else None


def _day(visit: Visit, typed: str, field: str) -> date | None:
    found = visit.services.reminders.read_day(visit.user, typed, field, is_past=True)
    if found and not 2000 <= found.year <= 9000:
        raise UserError("Enter a date between the years 2000 and 9000.")
    return found
