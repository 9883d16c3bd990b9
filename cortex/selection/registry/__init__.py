"""The registry as a plan sees it: what there is, who may use it, how it is written in a line."""
