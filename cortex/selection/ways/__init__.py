"""The published ways of choosing that ours is compared with, a file each: what they know and their stage."""
