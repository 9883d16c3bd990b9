import pytest

from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError


def test_what_was_sealed_opens_under_the_same_key_only() -> None:
    vault = Vault("k" * 32)
    sealed = vault.seal("sk-☃")
    assert "sk-" not in sealed.decode()
    assert sealed != vault.seal("sk-☃")
    assert Vault("k" * 32).unseal(sealed) == "sk-☃"
    with pytest.raises(ConfigError, match="secret key"):
        Vault("j" * 32).unseal(sealed)
    with pytest.raises(ConfigError):
        vault.unseal(sealed[:-4] + b"AAAA")


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="too short"):
        Vault("short").seal("x")


def test_the_signature_alone_tells_whose_a_secret_is() -> None:
    vault = Vault("k" * 32)
    sealed = vault.seal("sk-1")
    assert vault.fits(sealed)
    assert not Vault("j" * 32).fits(sealed)
    assert not vault.fits(sealed[:-4] + b"AAAA")
    assert not vault.fits(b"nothing")
