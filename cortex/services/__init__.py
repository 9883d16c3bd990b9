"""The doors for the browser and the command line."""
