"""Where newer versions of Cortex come from, and how one becomes a program below HOME/versions."""
