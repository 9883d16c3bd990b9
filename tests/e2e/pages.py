"""Every page of a furnished house with its address, and what a keyboard meets on it. For the page quality tests."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.e2e.browser import Window
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.person import poll

SHELL = "run `df -h` in the shell"
MODEL = {"name": "Local", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1", "streams": "1"}

# What the keyboard stops at on this page, in order; a radio group is one stop.
STOPS = """() => [...document.querySelectorAll('a[href],button,input,select,textarea,summary,[tabindex="0"]')]
  .filter(e =>
  e.tabIndex >= 0 && !e.disabled && e.type !== 'hidden' && e.checkVisibility({visibilityProperty: true})
  && !e.closest('dialog:not([open]),[inert]') && !(e.type === 'radio' && !e.checked)).length"""
# The element in focus: a number of its own, and whether its focus can be seen on it, its box or its label.
AT = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  window.met ??= new Map();
  if (!met.has(e)) met.set(e, met.size);
  const seen = [e, e.parentElement, e.closest('form'), e.nextElementSibling].some(one => {
    if (!one) return false;
    const style = getComputedStyle(one);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
      || one !== e && (one.matches(':focus-within') && one.matches('.inset,.composer'));
  });
  const box = e.getBoundingClientRect();
  return { number: met.get(e), name: (e.id || e.outerHTML).slice(0, 80), isSeen: seen,
           isInView: box.bottom > 0 && box.top < innerHeight };
}"""
# Controls that are too small to hit: below `least` in height or width, unless they stand in a line of text.
SMALL = """least => [...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary')]
  .filter(e => e.checkVisibility({visibilityProperty: true}) && !e.closest('.vh,.skip,.prose,p'))
  .map(e => [e, /radio|checkbox/.test(e.type) && e.closest('label') || e.closest('.inset') || e])
  .map(([e, target]) => [e, target.getBoundingClientRect()])
  .filter(([e, box]) => box.height && (box.height < least - 0.5 || box.width < 24))
  .map(([e, box]) => `${(e.id || e.outerHTML).slice(0, 90)} ${Math.round(box.width)}x${Math.round(box.height)}`)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Furnished:
    """A house with something of everything in it."""

    admin: Caller
    member: Caller
    paths: tuple[str, ...]
    chat: str
    asked: list[str] = field(default_factory=list)

    def ask_something(self) -> str:
        """A conversation that waits for the admin's word, for five minutes from now; its path. The one before ends."""
        for earlier in self.asked:
            self.admin.post(f"{earlier}/stop")
        place = f"/c/{self.admin.send('new', SHELL)}"
        poll(lambda: 'class="ask ' in self.admin.get(place).text)
        self.asked[:] = [place]
        return place


def furnish(home: Path, admin: Caller) -> Furnished:
    """Fill the house: a chat, tasks, notes, a model, a role's settings, a second person."""
    member = admin.invite("Bob")
    chat = admin.send("new", "add milk and eggs to my shopping list")
    poll(lambda: 'class="foot"' in admin.get(f"/c/{chat}").text)
    admin.post("/tasks", title="Call the landlord about the boiler", list_name="home", due="2026-01-09")
    admin.post("/notes", name="Garden")
    admin.give("Rental contract.md", b"# Rental contract\n\nNo pets, but cats.\n")
    file = re.findall(r'href="(/files/\w+)"', admin.get("/files").text)[0]
    admin.post("/journals", name="Garden")
    journal = re.findall(r'<tr id="journal-(\w+)"', admin.get("/journals").text)[0]
    admin.post(f"/journals/{journal}/new", key="frost1", title="First frost", text="# Beds\n\nThe *dahlias* are in.")
    admin.post("/journal-entries/frost1/edit", version="1", title="First frost", text="The *dahlias* are out.")
    admin.post("/skills", example="1")
    admin.post("/memory", text="I am vegetarian and have been since 2011.")
    fact = re.findall(r'<tr id="fact-(\w+)"', admin.get("/memory").text)[0]
    admin.post(f"/memory/{fact}", version="1", text="I am vegetarian, and so is Carla.", certainty="inferred")
    admin.post("/models", **MODEL)
    admin.post("/models/chain", names="offline")
    admin.post("/account/roles/coder", mode="all", max_rounds="9")
    admin.post("/account/roles", name="poet", source="chat", prompt="Answer in verse.")
    admin.post("/admin/tools/web_read", sending="never")
    admin.post("/admin/tools/in/tasks", phrases="groceries [task_create]", do="save")
    admin.post("/admin/tools/try", text="add milk to my list", expected="task_create", do="keep")
    (folder,) = [one for one in home.iterdir() if (one / "notes").is_dir()]
    (folder / "agent_notes").mkdir(exist_ok=True)
    (folder / "agent_notes" / "orchestrator.md").write_text("Likes tea.\n", encoding="utf-8")
    task = re.findall(r'id="task-(\w{10,})"', admin.get("/tasks?q=landlord").text)[0]
    bob = re.findall(r"/admin/users/(\w+)/disable", admin.get("/admin/users").text)[0]
    admin.post("/admin/budgets", kind="user", limit_tokens="900000", limit_usd="2.50", at_limit="stop")
    budget = re.findall(r"/admin/budgets/(\w+)/remove", admin.get("/admin/budgets").text)[0]
    turn = re.findall(r'href="/turns/(\w+)/why', admin.get(f"/c/{chat}").text)[0]
    admin.post("/admin/tools/task_create/description", description="Put a thing on a list.", do="save")
    admin.post("/admin/tools/task_create/call", **{"a.title": "Oil the gate", "a.list_name": "home"})
    poll(lambda: "manual" in admin.get("/runs").text)
    tried = re.findall(r'<tr id="run-(\w+)"', admin.get("/runs?tool=task_create").text)[0]
    admin.post("/reminders", words="water the plants every Friday at 18:00")
    admin.post("/reminders", words="call mum tomorrow at 9", repeat_s="300")
    reminder = re.findall(r'<tr id="next-(\w+)"', admin.get("/reminders").text)[0]
    admin.post("/jobs/new", name="Boiler", prompt="hello", when="every day at 2:30", time_zone="Europe/Berlin")
    job = re.findall(r'<tr id="job-(\w+)"', admin.get("/jobs").text)[0]
    admin.post(f"/jobs/{job}/run")
    admin.post(f"/jobs/{job}/address", way="secret")
    poll(lambda: "Transcript" in admin.get(f"/jobs/{job}/runs?show=done").text)
    admin.post("/account/tokens", name="Editor", role="orchestrator", limit_tokens="100000")
    token = re.findall(r'<tr id="token-(\w+)"', admin.get("/account/tokens").text)[0]
    admin.post("/admin/mcp", config='{"mcpServers": {"shop": {"command": "/bin/false"}}}')
    paths = (
        "/c/new",
        f"/c/{chat}",
        f"/c/{chat}/rename",
        f"/c/{chat}/delete",
        "/search?q=milk",
        "/chats",
        "/chats?archived=1",
        "/more",
        "/admin",
        "/start",
        "/today",
        "/tasks",
        "/tasks?done=1",
        f"/tasks/{task}",
        "/tasks?list=home",
        "/lists?name=home",
        "/calendar",
        "/calendar?view=day",
        "/calendar?view=month",
        "/calendar/new",
        "/calendar/accounts",
        "/mail",
        "/reminders",
        "/reminders/clear",
        f"/reminders/{reminder}",
        "/jobs",
        "/jobs/new",
        "/jobs/import",
        f"/jobs/{job}",
        f"/jobs/{job}/address",
        f"/jobs/{job}/address/remove",
        f"/jobs/{job}/mail",
        f"/jobs/{job}/runs",
        f"/jobs/{job}/delete",
        "/files",
        "/files?q=cats",
        file,
        "/notes",
        "/notes/Garden",
        "/notes/Garden?edit=1",
        "/notes/Garden/delete",
        "/journals",
        "/journals?q=dahlias",
        f"/journals/{journal}",
        f"/journals/{journal}?removed=1",
        f"/journals/{journal}/new",
        f"/journals/{journal}/rename",
        "/journal-entries/frost1",
        "/journal-entries/frost1/edit",
        "/journal-entries/frost1/history",
        "/journal-entries/frost1/history/1",
        "/skills",
        "/skills?message=plan+my+week",
        "/skills/weekly-review",
        "/memory",
        "/memory?q=vegetarian",
        "/memory/forget-all",
        f"/memory/{fact}",
        "/scratchpad",
        "/agent-notes/orchestrator",
        "/agent-notes/orchestrator/clear",
        "/models",
        "/models/connect",
        "/models/new",
        "/models/edit?name=Local",
        "/models/remove?name=Local",
        "/account",
        "/account/you",
        "/account/look",
        "/account/chats",
        "/account/roles",
        "/account/notifications",
        "/account/sign-in",
        "/account/keys",
        "/account/data",
        "/account/roles/coder",
        "/account/roles/new",
        "/account/roles/poet",
        "/account/roles/poet/delete",
        "/notifications",
        "/notifications?show=unread",
        "/notifications?kind=approval",
        "/notifications/settings",
        "/account/devices",
        "/account/import",
        "/account/tokens",
        "/account/tokens/new",
        f"/account/tokens/{token}/revoke",
        "/admin/users",
        f"/admin/users/{bob}/disable",
        "/admin/tools",
        "/admin/tools/task_create",
        "/admin/tools/task_create/call",
        f"/admin/tools/task_create/call?run={tried}",
        "/admin/tools/in/tasks",
        "/admin/tools/try",
        "/admin/mcp",
        "/admin/coding",
        "/admin/mcp/shop",
        "/admin/roles",
        "/admin/roles/coder",
        "/usage",
        "/usage?p=28&by=tool",
        "/usage?person=all&by=person",
        "/runs",
        "/runs?status=stopped",
        "/runs?person=all",
        f"/runs?conversation={chat}",
        f"/runs/{turn}",
        f"/runs/{tried}",
        f"/runs/{turn}?round=1&recipe=all",
        "/admin/budgets",
        f"/admin/budgets/{budget}/remove",
        "/health",
        "/account/delete",
        "/admin/health/restart",
        "/stop-all",
        "/admin/audit",
        "/admin/audit?kind=login",
        "/admin/approvals",
    )
    return Furnished(admin=admin, member=member, paths=paths, chat=f"/c/{chat}")


def go(window: Window, path: str, status: int = 200) -> Page:
    """Open a page, giving the password where it is asked for; that the browser reports an error is no complaint."""
    page = window.page
    answer = page.goto(path)
    if "/confirm" in page.url:
        page.fill("[name=password]", PASSWORD)
        page.click("main button.primary")
        page.wait_for_url(f"**{path}")
        return page
    assert answer is not None
    assert answer.status == status, path
    if status >= 400:
        forgive(window, status)
    return page


def forgive(window: Window, status: int) -> None:
    """Take Chromium's own report of this status out of the complaints; anything else stays."""
    line = f"the server responded with a status of {status}"

    def told() -> bool:
        window.page.wait_for_timeout(20)  # events come in while playwright waits
        return any(line in one for one in window.complaints)

    poll(told)
    window.complaints[:] = [one for one in window.complaints if line not in one]


def walk(page: Page) -> tuple[int, list[dict[str, Any]]]:
    """Press Tab for more than a whole round: how many stops the page has, and those that were met, in order."""
    stops: int = page.evaluate(STOPS)
    met: list[dict[str, Any]] = []
    for _ in range(stops + 12):
        page.keyboard.press("Tab")
        at = page.evaluate(AT)
        if at is not None and not any(one["number"] == at["number"] for one in met):
            met.append(at)
    return stops, met


def unhandled(window: Window) -> None:
    """Post the page's main form although the browser would hold it back, so that the server's words are shown."""
    window.page.evaluate("() => { const form = document.querySelector('main form.form'); form.noValidate = true; }")
    window.page.locator("main form.form button.primary").first.click()
    forgive(window, 422)


def forgive_lost_login(*windows: Window) -> None:
    """A live page may hear that its login has ended before it is left: Chromium and htmx tell of that."""
    for window in windows:
        window.complaints[:] = [line for line in window.complaints if "401" not in line and "htmx:" not in line]


def forgive_absence(*windows: Window) -> None:
    """Chromium and htmx tell of each try while the daemon was away: that is what they have to do."""
    for window in windows:
        away = (
            "ERR_CONNECTION_REFUSED",
            "ERR_INCOMPLETE_CHUNKED",
            "ERR_CONNECTION_RESET",
            "ERR_EMPTY_RESPONSE",
            "htmx",
        )
        window.complaints[:] = [one for one in window.complaints if not any(word in one for word in away)]
