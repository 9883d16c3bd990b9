"""Which tools a model call carries, in which form, and why (docs/selection.md). Pure: inputs in, a plan out."""
