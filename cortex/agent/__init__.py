"""The ReAct loop: no disk, no network, no clock."""
