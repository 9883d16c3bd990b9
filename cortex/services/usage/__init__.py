"""What was used: runs, traces, tokens and money."""
