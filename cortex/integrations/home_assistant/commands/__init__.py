"""Plain commands for the house, read without a model: "turn off the kitchen lights", in English and German.

Pure: text and a house in, service calls out. What is not certain is nobody's command: `understand.py` is the door.
"""
