"""MCP servers: their card, the connection to one, what they answer. Only `connection.py` and below load the package."""
