"""A request to a job's address: who sent it, by secret or signature, and what it says as text. Pure."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import parse_qsl

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.standard_webhooks import signature

BODY_BYTES = 256_000
AGE_S = 300.0  # of a signature with a time (standardwebhooks.com)
DELIVERIES = ("webhook-id", "x-github-delivery", "x-gitea-delivery", "idempotency-key")
PLAIN = ("x-cortex-secret", "x-gitlab-token")
SIGNED = ("x-hub-signature-256", "webhook-signature")
MOST_FIELDS = 10_000
_DELIVERY = re.compile(r"[\x21-\x7e]{1,200}")


class HookRequest(Struct, frozen=True, kw_only=True):
    """A request as it came. `headers`: by their names in small letters."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def delivery(self) -> str:
        """The sender's own id of it, by which a second try is known; "" where it gave none."""
        given = next((self.headers[name] for name in DELIVERIES if self.headers.get(name)), "")
        return given if _DELIVERY.fullmatch(given) else ""

    @property
    def has_proof(self) -> bool:
        """Tell whether it brings anything that could prove who sends it: a secret, or a signature of the body."""
        return any(self.headers.get(name) for name in ("authorization", *PLAIN, *SIGNED))

    def is_signed_by(self, secret: str, now: datetime) -> bool:
        """Tell whether its sender knows the secret: it came along, or signed it as GitHub or Standard Webhooks do."""
        bearer = self.headers.get("authorization", "")
        given = [bearer[7:].strip() if bearer[:7].lower() == "bearer " else ""]
        given += [self.headers.get(name, "") for name in PLAIN]
        if any(hmac.compare_digest(one.encode(), secret.encode()) for one in given if one):
            return True
        return self._is_hub_signed(secret) or self._is_standard_signed(secret, now)

    def _is_hub_signed(self, secret: str) -> bool:
        given = self.headers.get("x-hub-signature-256", "").removeprefix("sha256=").lower()
        right = hmac.new(secret.encode(), self.body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(given.encode(), right.encode())

    def _is_standard_signed(self, secret: str, now: datetime) -> bool:
        id, at = self.headers.get("webhook-id", ""), self.headers.get("webhook-timestamp", "")
        if not id or not re.fullmatch(r"\d{1,12}", at) or abs(now.timestamp() - int(at)) > AGE_S:
            return False
        right = signature(id, int(at), self.body, secret).encode()
        words = self.headers.get("webhook-signature", "").split()
        return any(hmac.compare_digest(word.removeprefix("v1,").encode(), right) for word in words)

    @property
    def text(self) -> str:
        """Return what it says; UserError for what is no text."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind.startswith("multipart/"):
            raise UserError("Files are not taken here: send JSON, a form or plain text.")
        try:
            text = self.body.decode("utf-8")
        except UnicodeDecodeError:
            raise UserError("The body is not UTF-8 text: send JSON, a form or plain text.") from None
        if "\0" in text:
            raise UserError("The body contains a NUL character.")
        if kind == "application/x-www-form-urlencoded":
            if text.count("&") >= MOST_FIELDS:
                raise UserError(f"The form has too many fields: at most {MOST_FIELDS:,}.")
            return "\n".join(f"{name}: {value}" for name, value in parse_qsl(text, keep_blank_values=True))
        return text.strip()
