"""Cortex: a self-hosted assistant. The web page lives in `web/`."""

import sys

VERSION = "0.2.0"

# Where rich happens to be there, httpx imports it and pygments for the program of its name: 4.5 MB and 30 ms.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: its import fails, as Python documents
