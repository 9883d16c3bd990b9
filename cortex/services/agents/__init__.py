"""Agents that work in the background for a turn, and what becomes of their results."""
