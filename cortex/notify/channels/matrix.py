"""Matrix: a notice as a message in the room that its person linked under Account, Messengers."""

from cortex.notify.linked import linked_channel

CHANNEL = linked_channel("matrix", "Matrix", order=36, tested="a real Synapse")
