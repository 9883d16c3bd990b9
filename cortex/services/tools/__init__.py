"""The tools as they can be used here: settings, words, plans, skills."""
