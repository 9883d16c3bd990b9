"""Text out of documents. `reader.py` runs in the daemon; the rest in a program of its own, `program.py`, shut in."""
