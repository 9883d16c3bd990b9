"""Judges the recipes: over files of utterances and tool catalogues, and by what conversations cost behind a cache."""
