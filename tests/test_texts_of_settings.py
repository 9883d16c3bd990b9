"""What people read names the row of the page of settings, and never a variable that the page sets."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.base.server_settings import GROUPS, KINDS, in_words, row_of
from cortex.base.user import User
from web.words import with_rows

ROOT = Path(__file__).parents[1]
VARIABLE = re.compile(rf"\bCORTEX_({'|'.join(sorted((name.upper() for name in KINDS), key=len, reverse=True))})\b")
# Read where Cortex is started, or shown by the page of settings, which calls them by their rows (`in_words`).
OF_THE_HOST = {
    "cortex/base/settings.py": "descriptions, shown by the page of settings and .env.example",
    "cortex/base/notification_settings.py": "the same, of notifications",
    "cortex/base/server_settings.py": "why a start is refused",
    "cortex/integrations/search.py": "why a start is refused",
    "cortex/compose/turns.py": "why a start is refused",
    "cortex/services/health/doctor.py": "a port that is taken: no page can be opened then",
    "cortex/commands/backup.py": "help of a command",
    "cortex/commands/doctor.py": "help of a command",
    "cortex/commands/preview.py": "help of a command",
    "web/serve.py": "why a start is refused",
}


def texts(file: Path) -> Iterator[str]:
    """The texts of a module without its docstrings; all of a template."""
    words = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield re.sub(r"{#.*?#}", "", words, flags=re.DOTALL)
        return
    tree = ast.parse(words)
    bare = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in bare:
            yield one.value


def test_no_text_tells_a_person_to_set_a_variable_that_has_a_row() -> None:
    files = [*(ROOT / "cortex").rglob("*.py"), *(ROOT / "web").glob("*.py"), *(ROOT / "web/pages").glob("*.py")]
    files += (ROOT / "web/templates").glob("*.html")
    assert len(files) > 500
    named = {
        str(file.relative_to(ROOT)): found[0]
        for file in files
        for text in texts(file)
        if (found := VARIABLE.search(text))
    }
    assert {file: name for file, name in named.items() if file not in OF_THE_HOST} == {}
    assert OF_THE_HOST.keys() - named.keys() == set(), "no longer needed"


def test_the_first_steps_name_none() -> None:
    assert not VARIABLE.search((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", list(KINDS))
def test_each_row_is_told_apart(name: str) -> None:
    others = {row_of(other) for other in KINDS if other != name}
    assert row_of(name) not in others
    assert any(row_of(name).startswith(f"Settings, {group.title}, “") for group in GROUPS)


def test_a_text_of_the_host_is_said_in_the_words_of_the_page() -> None:
    assert in_words("Set CORTEX_PUBLIC_URL, or CORTEX_HOME.") == "Set “Public address”, or CORTEX_HOME."


def test_an_admin_is_led_to_the_row_and_a_member_is_told_whom_to_ask() -> None:
    text = f"<Off>. Whoever runs Cortex enters it in {row_of('workspace_files')}."
    admin, member = (User(id="a", name="Ada", rank=rank) for rank in ("admin", "member"))
    led = with_rows(text, admin)
    assert '<a class="link" href="/admin/settings?open=limits#f-workspace_files">Settings, Limits' in led
    assert "&lt;Off&gt;" in led
    for reader in (member, None):
        assert "Whoever runs Cortex" in with_rows(text, reader)
        assert "href" not in with_rows(text, reader)
