"""Conversations as people see them: the composer, the transcript, what is sent and exported."""
