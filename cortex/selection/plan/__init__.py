"""A plan in the making, what a cache makes of it, and how it is told afterwards."""
