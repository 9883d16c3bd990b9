"""Mail of people: accounts on servers that they name, an index of heads that is kept in step, and what tools open."""
