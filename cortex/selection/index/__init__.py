"""What is searched: tools, skills and facts, by their words and by what these mean."""
