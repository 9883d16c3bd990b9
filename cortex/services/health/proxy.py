"""What the doctor and the health page say of the way to the page: the proxy in front, and outgoing ones.

Called by `live.py` and `cortex doctor`.
"""

from collections.abc import Mapping

from cortex.base import scan, trust
from cortex.base.errors import CortexError
from cortex.services.health.finding import Finding

OUTGOING = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


async def proxy_finding(public_url: str) -> Finding:
    """Return what a proxy does to requests and answers; asks the public address over the network."""
    if not public_url:
        return Finding(name="proxy", state="good", text="CORTEX_PUBLIC_URL is not set, so there is no proxy.")
    try:
        faults = await scan.load("cortex.integrations.proxy").faults(public_url)
    except (OSError, CortexError) as error:
        return Finding(
            name="proxy",
            state="warn",
            text=f"{public_url} cannot be asked from here: {error}.",
            mend="See that Cortex runs, open the page in a browser, and watch an answer.",
        )
    if faults:
        mend = "docs/proxies.md has settings for nginx and Caddy that work."
        return Finding(name="proxy", state="bad", text=f"At {public_url}: {' '.join(faults)}", mend=mend)
    return Finding(name="proxy", state="good", text=f"{public_url} passes requests and answers on as they are.")


def outgoing_findings(environ: Mapping[str, str]) -> list[Finding]:
    """Return what keeps it from other servers: a proxy that Cortex does not use, authorities that it cannot."""
    found = []
    if untrusted := trust.unusable(environ):
        mend = "Install ca-certificates, and let SSL_CERT_FILE name a file of them in PEM, or nothing."
        found.append(Finding(name="certificates", state="bad", text=untrusted, mend=mend))
    named = [name for name in OUTGOING if environ.get(name) or environ.get(name.lower())]
    if not named:
        return found
    return [
        *found,
        Finding(
            name="outgoing proxy",
            state="warn",
            text=f"{', '.join(named)} is set. Cortex ignores it: it checks every address as it connects, by itself.",
            mend="Where only a proxy reaches the internet, run a model gateway beside it: docs/proxies.md.",
        ),
    ]
