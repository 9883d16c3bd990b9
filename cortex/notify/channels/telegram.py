"""Telegram: a notice as a message in the chat that its person linked under Account, Messengers."""

from cortex.notify.linked import linked_channel

CHANNEL = linked_channel("telegram", "Telegram", order=35, tested="a double of its documented API")
