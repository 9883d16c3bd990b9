"""Durable runs, signals and streams. The only room that knows DBOS; it knows no turn, only named async functions."""

from cortex.base import lazy

# DBOS imports a driver that on SQLite it asks for the names of errors alone: 9 MB, 70 ms, and 10 MB on the disk where
# `make postgres` brought it. YAML: for a file we have not.
lazy.import_without("dbos", "yaml", optional=("psycopg", "psycopg.errors"))
