"""Updating Cortex to a newer version and going back: `updates.py` prepares, `upkeep.py` does it for admins."""
