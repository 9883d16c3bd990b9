"""One file for each kind of foreign content, found by its name. It is run by `program.py`, never by the daemon.

A reader has `read(source, emit)`: it hands each finding to `emit` and raises `UnreadableError` with a sentence. It may
have `ready(source)`, which is called before the fork: what it imports is imported once for all.
"""
