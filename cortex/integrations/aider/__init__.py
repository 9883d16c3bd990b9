"""aider, the coding agent: its installation, its door to a model, its runs in clones, what comes back of them."""
