"""Doubles of model servers that refuse what the real ones refuse, and the scenes that every one of them runs.

Written from the servers' own documents and from public reports of what they answered, never from Cortex's own table of
servers: two independent readings. `python -m tests.model_servers` shows the table of rows and scenes, and writes it as
JSON, of which docs/models.md is made.
"""
