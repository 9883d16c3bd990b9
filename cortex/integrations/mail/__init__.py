"""Mail servers, spoken with by IMAP: where one is, what is asked there, and the keys that providers give by OAuth 2.

Knows no person and no table. Nothing marks a mail as read by looking.
"""
