"""The commands of `cortex`, but those that start a server."""
