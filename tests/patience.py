"""How long a test waits for what has to come, and nothing about how long that takes.

Far longer than on a machine under load: a wait that ends by it found something that hangs, not something slow.
"""

PATIENCE_S = 120.0
