"""Cortex: a self-hosted assistant. The web page lives in `web/`."""
