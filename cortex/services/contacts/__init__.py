"""Contacts of people: kept in step with their servers, found by name, changed."""
