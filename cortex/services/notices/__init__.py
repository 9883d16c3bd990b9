"""Notifications: what is told, to whom, by which channel, and what became of it."""
