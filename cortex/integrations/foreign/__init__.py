"""Files and texts of other programs, read by a program of their own with limits; see `door.py` and `program.py`."""
