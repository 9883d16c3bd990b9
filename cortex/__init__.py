"""Cortex: a self-hosted assistant. The web page lives in `web/`."""

VERSION = "0.1.0"
