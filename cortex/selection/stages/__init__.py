"""The stages of the recipes, a file each. A stage reads the input, adds votes or marks to the draft, returns it."""
