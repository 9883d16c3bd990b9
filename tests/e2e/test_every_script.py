"""What people write in any script: it is read from its own side, and no page is wider than its screen for it."""

import re
from collections.abc import Iterator

import pytest

from tests.e2e.browser import overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser

WORDS = {
    "arabic": "اشترِ الحليب والبيض والخبز من السوق قبل أن يغلق مساء اليوم",
    "hebrew": "לקנות חלב וביצים ולחם בשוק לפני שהוא נסגר הערב בשעה שמונה",
    "chinese": "今天晚上八点市场关门之前去买牛奶鸡蛋和面包然后给妈妈打电话问她星期六来不来吃饭",
    "devanagari": "आज शाम आठ बजे बाज़ार बंद होने से पहले दूध, अंडे और रोटी खरीदना और माँ को फ़ोन करना",
    "thai": "ซื้อนมไข่และขนมปังที่ตลาดก่อนปิดเย็นนี้ตอนสองทุ่มแล้วโทรหาแม่ถามว่าวันเสาร์จะมากินข้าวไหม",
    "unbroken": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2,
}
FROM_THE_RIGHT = ("arabic", "hebrew")
ADMIN, MEMBER = "أمينة الخطيب", "דניאל כהן"  # what a page shows of people is read from its own side too
# The elements whose own words begin with such a script and are read from the left all the same.
WRONG_WAY = """words => {
  const found = new Set(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const one = texts.currentNode.parentElement, said = texts.currentNode.data.trim();
    if (!words.some(word => said.startsWith(word)) || one.closest('.vh,code,pre,template,option,bdi')) continue;
    const style = getComputedStyle(one);
    if (style.direction !== 'rtl' && style.unicodeBidi !== 'plaintext') found.add(one.outerHTML.slice(0, 110));
  }
  for (const box of document.querySelectorAll('input[type=text],input[type=search],input:not([type]),textarea'))
    if (words.some(word => box.value.startsWith(word)) && !box.matches('.vh')
        && getComputedStyle(box).direction !== 'rtl')
      found.add(box.outerHTML.slice(0, 110));
  return [...found];
}"""


@pytest.fixture(scope="module")
def ada(house: Daemon) -> Iterator[Caller]:
    """The admin, whose name is written from the right."""
    with Caller(house) as caller:
        yield caller.set_up(ADMIN)


@pytest.fixture(scope="module")
def written(house: Daemon, ada: Caller) -> tuple[str, ...]:
    """A house in which everything is written in these scripts; the paths of what shows it."""
    paths = ["/search?q=" + WORDS["arabic"].split()[1], "/c/new", "/tasks", "/chats", "/reminders", "/jobs", "/notes"]
    paths += [
        "/memory",
        "/journals",
        "/files",
        "/notifications",
        "/account/chats",
        "/account/roles",
        "/account/sign-in",
        "/models",
        "/usage",
        "/runs",
        "/today",
    ]
    for script, words in WORDS.items():
        chat = ada.send("new", f"{words}\n\nadd {words} to my shopping list")
        ada.until_idle(chat)
        ada.post(f"/c/{chat}/rename", title=words)
        paths += [f"/c/{chat}", f"/c/{chat}/rename"]
        ada.post("/tasks", title=words, list_name=words[:20].strip(), due="2026-11-28")
        ada.post("/reminders", words=f"{words} tomorrow at 9")
        ada.post("/jobs/new", name=words[:40], prompt=words, when="every day at 2:30", time_zone="Europe/Berlin")
        ada.post("/notes", name=words[:30].strip())
        ada.post("/memory", text=words)
        ada.post("/journals", name=words[:30].strip())
        ada.give(f"{words[:30].strip()}.md", f"# {words}\n\n- {words}\n".encode())
        ada.post("/account/roles", name=f"r{script}", source="chat", prompt=words)
    for path, part in (("/tasks", "task"), ("/reminders", "next"), ("/jobs", "job"), ("/memory", "fact")):
        found = re.findall(rf'id="{part}-(\w+)"', ada.get(path).text)
        paths += [f"{path}/{one}" for one in found[:6]]
    for path in ("/notes", "/files"):
        paths += sorted({*re.findall(rf'href="({path}/[^"/?]+)"', ada.get(path).text)})[:7]
    journals = re.findall(r'<tr id="journal-(\w+)"', ada.get("/journals").text)
    paths += [f"/journals/{one}" for one in journals[:2]]
    return tuple(path for path in (*paths, *_engine_pages(ada)) if ada.get(path).status_code == 200)


def _engine_pages(ada: Caller) -> list[str]:
    """Let names of people, lists, models, tokens and folders stand wherever an admin reads them; the paths of that."""
    arabic, hebrew = WORDS["arabic"], WORDS["hebrew"]
    ada.invite(MEMBER).__exit__()
    chat = ada.send("new", f"add {arabic} to my shopping list")
    ada.until_idle(chat)
    ada.post("/account/tokens", name=arabic[:24].strip(), role="orchestrator", limit_tokens="100000")
    ada.post("/skills", example="1")
    ada.post("/snippets", name=hebrew[:15].strip(), text=arabic)
    ada.post("/admin/budgets", kind="user", limit_tokens="900000", limit_usd="2.50", at_limit="stop")
    ada.post("/notes", name=f"{hebrew[:12].strip()}")
    asked = ada.send("new", f"run `echo {arabic}` in the shell")
    poll(lambda: 'class="ask ' in ada.get(f"/c/{asked}").text)
    turn = re.findall(r'href="/turns/(\w+)/why', ada.get(f"/c/{chat}").text)[0]
    people = re.findall(r"/admin/users/(\w+)/disable", ada.get("/admin/users").text)
    member = [f"/admin/users/{one}/disable" for one in people[:1]]
    job = re.findall(r'<tr id="job-(\w+)"', ada.get("/jobs").text)[0]
    ada.post(f"/jobs/{job}/run")
    poll(lambda: "Transcript" in ada.get(f"/jobs/{job}/runs?show=done").text)
    task_list = re.findall(r'href="(/lists\?name=[^"]+)"', ada.get(f"/tasks?list={arabic[:20].strip()}").text)
    approvals = re.findall(r'href="(/approvals/\w+)"', ada.get("/admin/approvals").text)
    return [
        *("/admin/users", "/admin/audit", "/admin/approvals", "/admin/budgets", "/admin/health", "/admin/tools"),
        *("/usage?person=all&by=person", "/usage?by=conversation", "/runs?person=all", f"/runs/{turn}", "/health"),
        *(f"/turns/{turn}/why", f"/runs?conversation={chat}", f"/c/{asked}", "/account/tokens", "/account/you"),
        *("/account/keys", "/account/data", "/account/delete", "/snippets", "/skills", "/admin/roles", "/more"),
        *(f"/jobs/{job}/runs", f"/jobs/{job}/lists", f"/jobs/{job}/address", f"/c/{chat}/share", f"/c/{chat}/delete"),
        *(
            "/stop-all",
            "/start",
            "/models/connect",
            "/admin/backups",
            "/admin/coding",
            "/admin/integrations",
            "/shared",
        ),
        *("/admin/settings", "/notifications/settings", "/account/devices", *member, *task_list[:1], *approvals[:1]),
    ]


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_every_page_reads_a_text_from_its_own_side_and_is_not_too_wide_for_any_script(
    house: Daemon, ada: Caller, written: tuple[str, ...], opens: Opens, is_phone: bool
) -> None:
    window = opens(house.origin, ada.token, is_phone=is_phone)
    starts = [ADMIN, MEMBER, *(WORDS[script].split()[0] for script in FROM_THE_RIGHT)]
    wrong: list[str] = []
    for path in written:
        page = go(window, path)
        wrong += [f"{path} {line}" for line in page.evaluate(WRONG_WAY, starts)]
        wrong += [f"{path} is {px} px too wide"] if (px := overflow_px(page)) > 0 else []
    assert wrong == [], "\n".join(wrong)


def test_an_answer_is_read_from_its_own_side_while_it_is_written_and_after(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/c/new")
    page.fill("#text", WORDS["arabic"])
    assert page.locator("#text").evaluate("box => getComputedStyle(box).direction") == "rtl"
    page.click(".send:not(.stop)")
    poll(lambda: page.locator(".said").count() == 1)
    assert page.locator(".said").evaluate("one => getComputedStyle(one).direction") == "rtl"
