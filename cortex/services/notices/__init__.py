"""Notifications: what they say, to whom they go, by which channel, and what became of them."""
