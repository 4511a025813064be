"""Makes a private authority and its certificates: one for the brokers, one for a client that proves itself by it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = timedelta(days=1)

_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. The brokers' certificate holds for their addresses and for no host name."""

    authority: Path
    broker: Path
    broker_key: Path
    client: Path
    client_key: Path


def make_certificates(directory: Path, addresses: Iterable[str], client_name: str) -> Certificates:
    """A new authority with a certificate for brokers at `addresses` (IP), and one for the client `client_name`."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Certificates(
        authority=directory / "authority.pem",
        broker=directory / "broker.pem",
        broker_key=directory / "broker.key",
        client=directory / "client.pem",
        client_key=directory / "client.key",
    )
    authority_key = ec.generate_private_key(ec.SECP256R1())
    issuer = _named("harness authority")
    authority = (
        _builder(issuer, issuer, authority_key, authority_key)
        .add_extension(x509.BasicConstraints(True, None), critical=True)
        .add_extension(_SIGNS_CERTIFICATES, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
    )
    _write(made.authority, authority.sign(authority_key, hashes.SHA256()))
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address)) for address in set(addresses)])
    for name, extension, certificate_file, key_file in (
        ("broker", hosts, made.broker, made.broker_key),
        (client_name, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), made.client, made.client_key),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), issuer, key, authority_key).add_extension(extension, critical=False)
        _write(certificate_file, builder.sign(authority_key, hashes.SHA256()))
        key_file.touch(mode=0o600)
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    return made


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _write(file: Path, certificate: x509.Certificate) -> None:
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
