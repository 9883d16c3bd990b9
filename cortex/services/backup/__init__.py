"""Copies of all that Cortex keeps, made while it runs, and put back as a whole or not at all.

`archive.py` is the file and `envelope.py` its encryption, `databases.py` the databases in it, `places.py` where files
are kept, `backups.py` the making, `restore.py` the way back, `nightly.py` when.
"""
