"""Receipts as selection makes them, from a small table of categories: for the page's tests only."""

from typing import Any

CATEGORIES = {
    "cron": (("nightly", "jobs", "job"), "cron_add cron_list cron_remove cron_toggle"),
    "ha": (("light", "lights", "turn on", "turn off"), "ha_call_service ha_get_state ha_get_states"),
    "session": (("last week", "what did we"), "session_read session_search"),
    "system": (("shell", "disk"), "shell_exec cortex_status"),
    "tasks": (("list", "milk", "task"), "task_create task_list task_update task_complete"),
    "web": (("news", "weather"), "web_search web_read"),
}
TOTAL, TOTAL_TOKENS = 69, 9731
PERMITTED, PERMITTED_TOKENS = 63, 8754


def receipt(text: str, mode: str = "auto") -> dict[str, Any]:
    """The receipt of a message; a category comes in by its words."""
    low = text.lower()
    sent: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    for category, (words, names) in CATEGORIES.items():
        hits = [word for word in words if word in low]
        for name in names.split():
            is_in = mode == "all" or (mode == "auto" and bool(hits))
            reason = f"you wrote “{'”, “'.join(hits[:2])}”" if hits else "no word of it was in the message"
            tokens: int = 96 + sum(map(ord, name)) % 60
            decision = {"name": name, "category": category, "is_in": is_in, "stage": "phrases", "score": None}
            decisions.append({**decision, "threshold": None, "tokens": tokens, "reason": reason})
            if is_in:
                row = {"name": name, "category": category, "form": "full", "tokens": tokens, "stage": "phrases"}
                sent.append({**row, "reason": reason})
    tokens = TOTAL_TOKENS if mode == "all" else sum(row["tokens"] for row in sent)
    return {
        "mode": mode,
        "role": "orchestrator",
        "recipe": "cortex",
        "total": TOTAL,
        "total_tokens": TOTAL_TOKENS,
        "permitted": PERMITTED,
        "permitted_tokens": PERMITTED_TOKENS,
        "sent": sent,
        "catalog_tokens": 0,
        "notes_tokens": 0,
        "tokens": tokens,
        "saved": max(0, TOTAL_TOKENS - tokens),
        "decisions": decisions,
        "epoch": {"number": 1, "is_open": bool(sent), "boundary": ""},
        "late": False,
        "reachable": [],
    }
