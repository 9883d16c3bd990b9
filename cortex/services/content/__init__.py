"""What people keep: tasks, notes and the board that tools use."""
