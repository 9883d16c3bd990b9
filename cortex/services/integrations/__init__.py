"""The outside systems that an admin sets up on a page: what can be, what is, who may use it, and the open clients."""
