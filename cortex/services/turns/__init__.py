"""A turn from its start to its end: planning, model calls, tool calls, approvals."""
