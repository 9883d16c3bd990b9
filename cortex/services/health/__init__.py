"""Whether this Cortex is well: the doctor, the status, the daily round."""
