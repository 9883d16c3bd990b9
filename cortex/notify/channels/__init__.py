"""The notification channels, a file each: `CHANNEL` is all that it says of itself. None imports another."""
