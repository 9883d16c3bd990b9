"""VAPID key pairs (RFC 8292): made, and their public half worked out. Keeping them is the services' matter."""

import base64

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

POINT_BYTES = 65
FORMER_KEYS = 2


def new_key() -> str:
    """A private key of 32 bytes in base64url."""
    number = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return encoded(number.to_bytes(32, "big"))


def rotated(keys: tuple[str, ...]) -> tuple[str, ...]:
    """A new key in front; former ones sign on for devices that have not subscribed anew yet."""
    return (new_key(), *keys[:FORMER_KEYS])


def public_key(key: str) -> str:
    """The uncompressed point of the public half in base64url; ValueError for what is no key."""
    return encoded(point(private(key)))


def private(key: str) -> ec.EllipticCurvePrivateKey:
    """The key as it signs; ValueError for what is no key."""
    return ec.derive_private_key(int.from_bytes(decoded(key), "big"), ec.SECP256R1())


def point(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Its public half as an uncompressed point, 65 bytes."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def is_point(key: str) -> bool:
    """Tell whether this is a public key on the curve, as a browser's subscription has one."""
    try:
        raw = decoded(key)
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), raw)
    except ValueError:
        return False
    return len(raw) == POINT_BYTES


def encoded(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def decoded(text: str) -> bytes:
    """The bytes of base64url or base64, padded or not; ValueError for anything else."""
    plain = text.rstrip("=").replace("+", "-").replace("/", "_")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError("is no base64url") from error
