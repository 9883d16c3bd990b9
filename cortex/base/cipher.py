"""Fernet by two functions, loaded late by `base/crypto.py` alone: many houses keep no secret at all."""

from cryptography.fernet import Fernet, InvalidToken


def seal(key: bytes, text: str) -> bytes:
    """The text encrypted and signed; another one each time."""
    return Fernet(key).encrypt(text.encode())


def opened(key: bytes, sealed: bytes) -> str | None:
    """Return what was sealed; None when it was sealed under another key or changed since."""
    try:
        return Fernet(key).decrypt(sealed).decode()
    except InvalidToken:
        return None
