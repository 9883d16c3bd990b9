"""Text out of documents. What parses them runs in a program of its own, shut in: `foreign/readers/document.py`."""
