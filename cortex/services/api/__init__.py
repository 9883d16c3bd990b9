"""Other programs: their tokens, and what they ask by the API that OpenAI's clients speak."""
