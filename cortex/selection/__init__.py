"""Which tools a model call carries, in which form, and why. Pure: recorded inputs in, a plan out; see SELECTION."""
