"""What the prior ways of choosing know: tables, scores and thresholds, a file a way. Read by their stages only."""
