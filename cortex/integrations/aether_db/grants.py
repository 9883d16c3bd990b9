"""What an account may do beside reading, from what SHOW GRANTS answers. Pure."""

import re
from collections.abc import Sequence

READING = frozenset({"USAGE", "SELECT", "SHOW VIEW", "SHOW DATABASES"})
GRANT = re.compile(r"(?is)^GRANT (?P<rights>.+?) ON (?P<place>.+?) TO .+?(?P<option> WITH GRANT OPTION)?;?$")
ROLE = re.compile(r"(?is)^GRANT (?P<role>\S+) TO ")
SHOWN = 6


def beyond_reading(grants: Sequence[str]) -> str:
    """Return what the account may do beside SELECT and SHOW VIEW, such as "INSERT, DROP on `shop`.*"; "" = nothing."""
    found = [words for line in grants if (words := _beyond(line.strip()))]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _beyond(line: str) -> str:
    if not line.upper().startswith("GRANT "):
        return ""
    grant = GRANT.match(line)
    if grant is None:
        role = ROLE.match(line)
        return f"the role {role['role']}, whose rights are not shown" if role else line[:80]
    rights = [right.strip().upper() for right in re.sub(r"\([^)]*\)", "", grant["rights"]).split(",")]
    extra = [right for right in rights if right not in READING]
    if grant["option"] or "WITH GRANT OPTION" in line.upper():
        extra.append("GRANT OPTION")
    return f"{', '.join(extra)} on {grant['place']}" if extra else ""


def reads_everything(grants: Sequence[str]) -> bool:
    """Tell whether it may read every schema of the server."""
    return any(
        (grant := GRANT.match(line.strip())) is not None
        and grant["place"] == "*.*"
        and re.search(r"(?i)\b(SELECT|ALL PRIVILEGES)\b", grant["rights"])
        for line in grants
    )
