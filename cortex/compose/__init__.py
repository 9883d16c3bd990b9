"""What Cortex is made of, in three classes over each other; `services.py` is the whole."""
