"""Matrix: Cortex's account on a homeserver, by the client-server API."""
