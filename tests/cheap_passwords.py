"""Passwords that cost no second to hash: in tests nobody guesses, and a thousand hashes took 0.16 s of processor each.

For this process and the children that `tests/children.py` forks. What the program starts with is shown by
`tests/services/accounts/test_accounts.py` with `SHIPPED`; what is started from nothing hashes as for people.
"""

from typing import Any

from cortex.services.accounts.passwords import Passwords

SHIPPED: dict[str, Any] = dict(Passwords.__init__.__kwdefaults__ or {})
CHEAP: dict[str, Any] = {"time_cost": 1, "memory_cost_kib": 64}


def make_cheap() -> None:
    """From now on, whoever gives no costs hashes at the least."""
    Passwords.__init__.__kwdefaults__ = CHEAP
