"""Home Assistant: its REST and websocket interfaces, what stands in the house, and the names people call it by."""
