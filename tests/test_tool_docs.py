"""docs/tools.md says of every tool what it may do and what it is tested on; `make check` sees that it is current."""

from cortex.app import shipped_registry
from cortex.commands.tool_docs import tools_page


def test_every_category_says_what_it_is_tested_on() -> None:
    registry = shipped_registry()
    assert [name for name, category in registry.categories.items() if not category.tested] == []
    page = tools_page(registry)
    assert [name for name in registry.tools if f"| `{name}` |" not in page] == []


def test_risk_and_reach_stand_in_the_row() -> None:
    rows = {line.split("`")[1]: line for line in tools_page(shipped_registry()).splitlines() if line.startswith("| `")}
    assert "| high, always asks, admins only |  | private, outside |" in rows["shell_exec"]
    assert "| medium or more | where its arguments say |" in rows["ha_call_service"]
    assert "| out |" in rows["email_send"]
