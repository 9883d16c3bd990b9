"""Plain commands and questions for the house, read without a model; `understand.py` is the door."""
