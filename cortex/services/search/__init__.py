"""One search over what a person has: chats, notes and files."""
