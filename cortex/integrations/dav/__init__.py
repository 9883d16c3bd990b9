"""Calendars and address books of a DAV server (RFC 4791, 6352, 6578): found, listed, kept in step, written.

`server.py` says where and by which key, `multistatus.py` reads answers, `client.py` asks, `discovery.py` finds what
there is. What is inside an appointment or a contact is read by `integrations/foreign/`, in a program of its own.
"""
