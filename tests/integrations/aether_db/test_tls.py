"""TLS to a real MariaDB with a certificate authority of one's own: checked as the card says, and never left out."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from cortex.base.clock import now
from cortex.base.errors import ServiceDown
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.form import AetherDbForm
from cortex.integrations.aether_db.open_names import Access
from cortex.integrations.aether_db.sessions import Sessions
from tests.mariadb import MariaServer
from tests.shop import shop_server


@dataclass(frozen=True)
class Authority:
    """Signs certificates; `pem` is what an admin pastes."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()


def named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def authority(name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        unsigned(named(name), named(name), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return Authority(key, made.sign(key, hashes.SHA256()))


def unsigned(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    since = now() - timedelta(days=1)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(since).not_valid_after(since + timedelta(days=9))


@pytest.fixture(scope="module")
def own() -> Authority:
    return authority("The house's own authority")


@pytest.fixture(scope="module")
def server(own: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaServer]:
    """Its certificate is for localhost, and not for 127.0.0.1."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    signed = (
        unsigned(named("localhost"), own.certificate.subject, key)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own.key.public_key()), critical=False)
        .sign(own.key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    with shop_server(f"--ssl-key={folder / 'key.pem'}", f"--ssl-cert={folder / 'cert.pem'}") as started:
        yield started


def by_card(server: MariaServer, ca: str, **other: str) -> Access:
    """What the card makes of a pasted certificate, whose line ends a page's field took away."""
    filled = {"host": "localhost", "port": server.port, "user": "reader", "password": "only-reading-ü€", **other}
    return AetherDbForm.model_validate(
        {"tls": "verify", **filled, "ca": " ".join(ca.split()), "schemas": ["shop"]}
    ).access


async def refusal(access: Access) -> str:
    database = ReadOnlyDatabase(access)
    with pytest.raises(ServiceDown) as refused:
        await database.query("select 1", 1)
    await database.close()
    return refused.value.message


async def test_an_authority_of_ones_own_is_taken_from_the_card(server: MariaServer, own: Authority) -> None:
    sessions = Sessions(by_card(server, own.pem))
    async with sessions.lent() as wire:
        ((_, cipher),) = await wire.do("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cipher
    sessions.close()
    database = ReadOnlyDatabase(by_card(server, f"{authority('another').pem} {own.pem}"))
    assert (await database.query("select name from members where id = 4", 1)).rows == (("Dörte",),)
    assert "answers; reading only" in await database.test()
    await database.close()


@pytest.mark.parametrize(
    ("ca", "host", "says"),
    [
        ("wrong", "localhost", "shows a certificate that is not trusted (unable to get local issuer certificate)"),
        ("none", "localhost", "shows a certificate that is not trusted (unable to get local issuer certificate)"),
        ("own", "127.0.0.1", "not valid for '127.0.0.1'"),
    ],
    ids=["another authority", "the machine's authorities", "another name"],
)
async def test_what_the_card_does_not_trust_is_refused_in_a_sentence(
    server: MariaServer, own: Authority, ca: str, host: str, says: str
) -> None:
    text = {"own": own.pem, "none": "", "wrong": authority("somebody else").pem}[ca]
    said = await refusal(by_card(server, text, host=host))
    assert says in said
    assert said.endswith("under Integrations.")


async def test_a_server_that_asks_for_tls_says_so_to_a_card_without(server: MariaServer, own: Authority) -> None:
    server.run("SET GLOBAL require_secure_transport = ON")
    plain = replace(by_card(server, ""), tls="off")
    said = await refusal(plain)
    server.run("SET GLOBAL require_secure_transport = OFF")
    assert "or takes encrypted connections only (TLS is off there): an admin can look under Integrations." in said
    database = ReadOnlyDatabase(plain)
    assert (await database.query("select 1", 1)).rows == (("1",),), "it was nothing else"
    await database.close()
