"""One file a page: `router`, and `NAV` when links lead to it. `web/register.py` finds them by a sorted scan."""
