"""What Cortex is made of, in four classes over each other; `services.py` is the whole."""
