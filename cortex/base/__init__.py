"""Values, settings, errors and sockets: the floor that knows nobody."""
