"""Contacts as vCards (RFC 2426, 6350): read, and changed without losing what other programs wrote into them."""
