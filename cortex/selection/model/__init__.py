"""The fitted models: what they weigh, how they are fitted, here and on a server."""
