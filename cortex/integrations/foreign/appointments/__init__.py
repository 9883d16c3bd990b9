"""Appointments in the form of RFC 5545: read, unfolded to single dates, written. Runs in `program.py` only."""
