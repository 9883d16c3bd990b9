"""What Cortex reaches outside itself: programs, sandbox, folders, web pages, search. Knows no user and no table."""
