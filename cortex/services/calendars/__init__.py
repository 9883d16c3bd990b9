"""Calendars of people: connected, kept in step with their servers, asked and changed."""
