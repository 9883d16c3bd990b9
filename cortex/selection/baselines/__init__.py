"""What the published ways of choosing know, that ours is compared with: a file each, read by their stages only."""
