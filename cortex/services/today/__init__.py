"""Today: what waits for a person, what is due, what comes next, what happened."""
