"""Messengers: people write to Cortex there, in a conversation that is the same on the page."""
