"""What a text says about tools, as votes and as a ranking."""
