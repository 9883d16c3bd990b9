"""To-do lists: `/tasks` and one task's own page."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Self
from urllib.parse import parse_qs, urlsplit

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.errors import Conflict, UserError
from cortex.base.numbers import whole_number
from cortex.services.content.shared_lists import InvitationRow
from cortex.services.content.tasks import INBOX, TaskFields, TaskListRow, TaskRow
from web.deps import FormNumber, Number, Text
from web.figures import plain_day
from web.render import Context, NavEntry, address, described, zone_of
from web.routes import PageRouter
from web.security import local_path
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
NAV = NavEntry(title="To do", href="/tasks", icon="task", order=10)
TASK_ROWS = 100


class TasksContext(Context, frozen=True, kw_only=True):
    """The lists."""

    tasks: Stretch[TaskRow] = described("this page's tasks, in order")
    tabs: Stretch[TaskListRow] = described("the lists that have a tab, the one shown among them")
    tabs_from: int = described("from which list on")
    lists: Sequence[TaskListRow] = described("every list with its counts")
    invitations: Stretch[InvitationRow] = described("lists that others offer to share and that wait for an answer")
    list_name: str = described("the list shown, empty for all")
    shown: TaskListRow | None = described("the list shown, with whom it is shared; None for all")
    with_whom: dict[str, tuple[str, ...]] = described("list's label -> with whom it is shared, () for nobody")
    is_done: bool = described("whether done tasks are shown")
    query: str = described("words to filter by")
    here: str = described("this page's own address, for forms to come back to")
    today: date = described("the reader's day, to mark what is late")
    draft: str = described("a title that was refused", default="")
    draft_list: str = described("the list it was meant for", default="")
    draft_due: str = described("the day on which it was to be due, as it was typed", default="")


class TaskForm(BaseModel):
    """A task's form as a browser sends it; the service checks it."""

    title: str = ""
    list_name: str = ""
    due: str = ""
    priority: str = "0"
    notes: str = ""

    @classmethod
    def of(cls, task: TaskRow) -> Self:
        """Return what the form shows of a stored task."""
        due = plain_day(task.due) if task.due else ""
        return cls(title=task.title, list_name=task.list_label, due=due, priority=str(task.priority), notes=task.notes)

    def values(self, due: date | None) -> TaskFields:
        """Return what the service takes, with the day as it was read. UserError for a priority that is none."""
        priority = whole_number(self.priority)
        if priority is None:
            raise UserError("Choose one of the priorities.", field="priority")
        return {
            "title": self.title,
            "list_name": self.list_name,
            "due": due,
            "priority": priority,
            "notes": self.notes,
        }


class TaskEditForm(TaskForm):
    """The same with the version it was made from."""

    version: int


class TaskContext(Context, frozen=True, kw_only=True):
    """One task."""

    task: TaskRow = described("the task as it stands")
    with_whom: tuple[str, ...] = described("names of the others who see its list")
    typed: TaskForm = described("the fields, with what was typed when that was refused")
    is_stale: bool = described("whether it was changed while the person was writing", default=False)


@router.get("/tasks")
async def show(
    visit: UserVisit,
    list: str = "",
    done: bool = False,
    q: str = "",
    start: Number = 0,
    tabs: Number = 0,
) -> Response:
    """The tasks of one list or all, open or done, filtered."""
    offers = whole_number(visit.request.query_params.get("offers", "")) or 0
    return await visit.show("tasks.html", await _context(visit, list, done, q, start=start, tabs=tabs, offers=offers))


@router.post("/tasks")
async def add(
    visit: UserVisit, title: Text = "", list_name: Text = INBOX, due: Text = "", back: Text = "/tasks"
) -> Response:
    """Add one and come back to the list."""
    try:
        day = visit.services.reminders.read_day(visit.user, due)
        task = await visit.services.tasks.create(visit.user, title, list_name=list_name, due=day)
    except UserError as refused:
        context = await _context(visit)
        context = replace(context, draft=title, draft_list=list_name, draft_due=due)
        return await visit.show("tasks.html", context, refused=refused)
    place = local_path(back, "/tasks")
    shown = parse_qs(urlsplit(place).query).get("list", [""])[0]
    if task.list_label not in (shown, INBOX) and urlsplit(place).path == NAV.href:
        place = address(NAV.href, list=task.list_label)  # there it stands, and there the next one goes
    field = "new-title" if urlsplit(place).path == NAV.href else "add-line"
    return visit.redirect(f"{place}#{field}")  # the next one is written where this one was


@router.get("/tasks/{task_id}")
async def show_one(visit: UserVisit, task_id: str) -> Response:
    """One task to edit."""
    task = await visit.services.tasks.get(visit.user, task_id)
    context = TaskContext(
        task=task,
        with_whom=_with_whom(await visit.services.tasks.lists(visit.user))[task.list_label],
        typed=TaskForm.of(task),
    )
    return await visit.show("task.html", context)


@router.post("/tasks/{task_id}")
async def save(visit: UserVisit, task_id: str, typed: Annotated[TaskEditForm, Form()]) -> Response:
    """Save the task, unless it was changed in between: then what was typed stands beside what is there."""
    try:
        due = visit.services.reminders.read_day(visit.user, typed.due)
        saved = await visit.services.tasks.update(visit.user, task_id, typed.version, typed.values(due))
    except (UserError, Conflict) as refused:
        task = await visit.services.tasks.get(visit.user, task_id)
        context = TaskContext(
            task=task,
            with_whom=_with_whom(await visit.services.tasks.lists(visit.user))[task.list_label],
            typed=typed,
            is_stale=isinstance(refused, Conflict),
        )
        return await visit.show("task.html", context, refused=refused)
    return visit.redirect("/tasks", f"Saved: {saved.title}")


@router.post("/tasks/{task_id}/complete")
async def complete(visit: UserVisit, task_id: str, back: Text = "/tasks") -> Response:
    """Tick it off."""
    task = await visit.services.tasks.complete(visit.user, task_id)
    undo = f"/tasks/{task_id}/reopen"
    return visit.redirect(local_path(back, "/tasks"), f"Done: {task.title}", undo_href=undo)


@router.post("/tasks/{task_id}/reopen")
async def reopen(visit: UserVisit, task_id: str, back: Text = "/tasks") -> Response:
    """Untick it."""
    await visit.services.tasks.reopen(visit.user, task_id)
    return visit.redirect(local_path(back, "/tasks"))


@router.post("/tasks/{task_id}/tomorrow")
async def put_off(visit: UserVisit, task_id: str, back: Text = "/tasks") -> Response:
    """Make it due tomorrow."""
    day = _today(visit) + timedelta(days=1)
    before = await visit.services.tasks.get(visit.user, task_id)
    task = await visit.services.tasks.update(visit.user, task_id, before.version, {"due": day})
    undo = address(f"/tasks/{task_id}/due", day=before.due.isoformat() if before.due else "")
    return visit.redirect(local_path(back, "/tasks"), f"Tomorrow: {task.title}", undo_href=undo)


@router.post("/tasks/{task_id}/due")
async def set_due(visit: UserVisit, task_id: str, day: str = "", back: Text = "/tasks") -> Response:
    """Make it due on that day, on none for an empty one."""
    before = await visit.services.tasks.get(visit.user, task_id)
    due = visit.services.reminders.read_day(visit.user, day)
    task = await visit.services.tasks.update(visit.user, task_id, before.version, {"due": due})
    return visit.redirect(local_path(back, "/tasks"), f"Restored: {task.title}")


@router.post("/tasks/{task_id}/move")
async def move(visit: UserVisit, task_id: str, by: FormNumber, back: Text = "/tasks") -> Response:
    """So many places up (below 0) or down among the tasks of its list."""
    await visit.services.tasks.move(visit.user, task_id, by)
    return visit.redirect(local_path(back, "/tasks"))


@router.post("/tasks/{task_id}/delete")
async def delete(visit: UserVisit, task_id: str, version: FormNumber, back: Text = "/tasks") -> Response:
    """Delete it; the next page offers it back."""
    task = await visit.services.tasks.delete(visit.user, task_id, version)
    undo = f"/tasks/{task_id}/restore"
    return visit.redirect(local_path(back, "/tasks"), f"Deleted: {task.title}", undo_href=undo)


@router.post("/tasks/{task_id}/restore")
async def restore(visit: UserVisit, task_id: str) -> Response:
    """Bring a deleted task back."""
    task = await visit.services.tasks.restore(visit.user, task_id)
    return visit.redirect("/tasks", f"Restored: {task.title}")


async def _context(
    visit: Visit, list_name: str = "", is_done: bool = False, query: str = "", **starts: int
) -> TasksContext:
    rows = await visit.services.tasks.list(visit.user, list_name=list_name, is_done=is_done, query=query)
    lists = await visit.services.tasks.lists(visit.user)
    offers = await visit.services.shared_lists.invitations(visit.user)

    def place(**other: int) -> str:
        return address("/tasks", **{"list": list_name, "done": is_done, "q": query, **starts, **other})

    tabs_from = max(0, starts.get("tabs", 0))
    tabs = cut(lists, tabs_from, place, by="tabs")
    shown = next((one for one in lists if one.label == list_name), None)
    if shown and shown not in tabs.rows:
        tabs = replace(tabs, rows=[shown, *tabs.rows])
    return TasksContext(
        tasks=cut(rows, starts.get("start", 0), place, most=TASK_ROWS),
        lists=lists,
        tabs=tabs,
        tabs_from=tabs_from,
        invitations=cut(offers, starts.get("offers", 0), place, by="offers"),
        list_name=list_name,
        shown=shown,
        with_whom=_with_whom(lists),
        is_done=is_done,
        query=query,
        here=place(),
        today=_today(visit),
    )


def _today(visit: Visit) -> date:
    """The reader's day."""
    return visit.services.runtime.clock().astimezone(zone_of(visit.user)).date()


def _with_whom(lists: Sequence[TaskListRow]) -> dict[str, tuple[str, ...]]:
    """List's label -> names of the others who see it."""
    return defaultdict(tuple, ((one.label, one.with_whom) for one in lists if one.with_whom))
