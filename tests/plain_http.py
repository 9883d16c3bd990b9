"""What tests give httpx where they speak plain HTTP to this machine.

Without it each client, and each request by `httpx.get` and the like, first reads the certificates of all authorities:
24 milliseconds of processor, 0.2 seconds of each test over a calendar server (2026-11-28).
"""

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
