"""The models that may be called: the registry file, its secrets, prices and abilities."""
