import pytest

from cortex.selection.late_tools import is_native


@pytest.mark.parametrize(
    ("provider", "model", "host", "thinks", "native"),
    [
        ("anthropic", "claude-opus-5-20260801", "", True, True),
        ("anthropic", "claude-sonnet-5-5", "api.anthropic.com", True, True),
        ("anthropic", "claude-sonnet-4-6", "", False, True),
        ("anthropic", "claude-sonnet-4-6", "", True, False),
        ("anthropic", "claude-3-5-haiku", "", False, False),
        ("anthropic", "claude-opus-5", "proxy.example", False, False),
        ("openai", "gpt-5.4", "", True, True),
        ("openai", "gpt-6-sol", "api.openai.com", False, True),
        ("openai", "gpt-5.4-nano", "", False, False),
        ("openai", "gpt-4o", "", False, False),
        ("openai", "gpt-5.5", "openrouter.ai", False, False),
    ],
)
def test_who_declares_tools_late_by_itself(provider: str, model: str, host: str, thinks: bool, native: bool) -> None:
    assert is_native(provider, model, host, thinks=thinks) is native
