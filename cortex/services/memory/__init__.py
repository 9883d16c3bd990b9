"""What Cortex remembers of people: kept, recalled with a message, and learned from what they said."""
