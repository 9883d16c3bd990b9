"""Jobs: what is planned, what comes due, what ran and what was missed."""
