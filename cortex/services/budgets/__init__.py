"""What may be spent, and what is held for a call."""
