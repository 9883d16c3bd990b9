"""The stages of the recipes. A stage reads the input, adds votes or marks to the draft, returns it."""
