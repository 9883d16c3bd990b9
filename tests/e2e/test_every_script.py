"""What people write in any script: it is read from its own side, and no page is wider than its screen for it."""

import re

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
    if (words.some(word => box.value.startsWith(word)) && getComputedStyle(box).direction !== 'rtl')
      found.add(box.outerHTML.slice(0, 110));
  return [...found];
}"""


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
    return tuple(path for path in paths if ada.get(path).status_code == 200)


def test_every_page_reads_a_text_from_its_own_side(
    house: Daemon, ada: Caller, written: tuple[str, ...], opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    starts = [WORDS[script].split()[0] for script in FROM_THE_RIGHT]
    wrong = {path: found for path in written if (found := go(window, path).evaluate(WRONG_WAY, starts))}
    assert wrong == {}, "\n".join(f"{path} {line}" for path, found in wrong.items() for line in found)


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_no_script_makes_a_page_too_wide(
    house: Daemon, ada: Caller, written: tuple[str, ...], opens: Opens, is_phone: bool
) -> None:
    window = opens(house.origin, ada.token, is_phone=is_phone)
    wide = {path: px for path in written if (px := overflow_px(go(window, path))) > 0}
    assert wide == {}


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
