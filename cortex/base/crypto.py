"""Seals what may not lie open in the database. Where the key comes from is `base/settings.py`'s matter."""

import base64
import hashlib
import hmac

from cortex.base import scan
from cortex.base.errors import ConfigError

_PURPOSE = b"cortex/secrets/1"
_WORDING = b"cortex/wording/1"
_AUDIT = b"cortex/audit/1"
_BACKUP = b"cortex/backup/signature/1"
_SHORTEST = 16
_SIGNING, _SIGNATURE = 16, 32  # bytes: of the key, those that sign; of a Fernet token, its end
_CIPHER = "cortex.base.cipher"  # cryptography weighs 7 MB: read with the first secret


class Vault:
    """Seals and opens short texts under one key of any form, at least 16 characters long.

    Fernet (AES-128-CBC with HMAC-SHA256) under SHA-256(purpose, key): the key is random, not a password, so one
    hash is enough.
    """

    def __init__(self, key: str) -> None:
        self._has_key = len(key) >= _SHORTEST
        self._digest = hashlib.sha256(_PURPOSE + b"\0" + key.encode()).digest()
        self._key = base64.urlsafe_b64encode(self._digest)

    def seal(self, text: str) -> bytes:
        """The text encrypted and signed; another one each time. ConfigError where there is no key, or a short one."""
        if not self._has_key:
            raise ConfigError("The secret key is missing or too short. Use 32 random bytes in hex.")
        sealed: bytes = scan.load(_CIPHER).seal(self._key, text)
        return sealed

    def unseal(self, sealed: bytes) -> str:
        """Return what was sealed. ConfigError when it was sealed under another key or changed since."""
        text: str | None = scan.load(_CIPHER).opened(self._key, sealed)
        if text is None:
            raise ConfigError(
                "A stored secret cannot be opened because the secret key has changed. Restore the old key, or "
                "enter the secret again."
            )
        return text

    def fits(self, sealed: bytes) -> bool:
        """Tell whether it was sealed under this key and is whole: by its signature alone, without the cipher."""
        try:
            token = base64.urlsafe_b64decode(sealed)
        except ValueError:  # cut or changed
            return False
        signature = hmac.new(self._digest[:_SIGNING], token[:-_SIGNATURE], hashlib.sha256).digest()
        return hmac.compare_digest(signature, token[-_SIGNATURE:])


def wording_key(key: str, text: str) -> str:
    """A name for a text that tells equal ones apart from others and nothing else: without the key nobody can guess."""
    keyed = hashlib.sha256(_WORDING + b"\0" + key.encode()).digest()
    return hmac.new(keyed, text.encode(), hashlib.sha256).hexdigest()[:32]


def audit_key(key: str) -> bytes:
    """The key of the audit log's chain: who lacks it cannot write a row that fits."""
    return hashlib.sha256(_AUDIT + b"\0" + key.encode()).digest()


def backup_key(key: str) -> bytes:
    """The key that backups are signed with, and nothing else is: HKDF-SHA256 (RFC 5869), no salt, one block."""
    extracted = hmac.digest(bytes(hashlib.sha256().digest_size), key.encode(), "sha256")
    return hmac.digest(extracted, _BACKUP + b"\x01", "sha256")
