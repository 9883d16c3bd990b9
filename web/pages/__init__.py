"""One file a page: `router`, and `NAV` when it stands in the side bar. `web/app.py` finds them by a sorted scan."""
