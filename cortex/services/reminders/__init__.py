"""Reminders: what people wait to hear, and when."""
