"""Durable runs, signals and streams. The only room that knows DBOS; it knows no turn, only named async functions."""
