"""A real aider in an environment of its own, from `make aider`."""

import os
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cortex"
AIDER = CACHE / "aider" / "bin" / "aider"
NO_AIDER = "" if AIDER.exists() else "aider is not here: run `make aider`"
EDIT = """Done.

hello.py
```python
<<<<<<< SEARCH
    return 'hello'
=======
    return 'good day'
>>>>>>> REPLACE
```
"""
