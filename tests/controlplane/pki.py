"""Certificates of a throw-away cluster, and the kubeconfigs that carry them."""

import base64
import ipaddress
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Signed:
    """A certificate with its key; PEM."""

    certificate: bytes
    key: bytes


class Ca:
    """A CA that lives as long as the test run."""

    def __init__(self, name: str) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._name = _name(name)
        self.certificate = _pem(
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def sign(self, name: str, *, group: str = "", names: tuple[str, ...] = ()) -> Signed:
        """Return a certificate for a user with a group, or for a server with DNS names."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        builder = _builder(_name(name, group), self._name, key)
        if names:
            alternatives: list[x509.GeneralName] = [
                x509.IPAddress(ipaddress.ip_address(one)) if one[0].isdigit() else x509.DNSName(one)
                for one in names
            ]
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        return Signed(_pem(builder.sign(self._key, hashes.SHA256())), private(key))


def private(key: rsa.RSAPrivateKey) -> bytes:
    """Return ``key`` as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def account_keys() -> Signed:
    """Return the public and the private key that sign service account tokens."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Signed(public, private(key))


def kubeconfig(path: Path, server: str, ca: bytes, user: Signed) -> None:
    """Write a kubeconfig; JSON is YAML."""
    encoded = {name: base64.b64encode(data).decode() for name, data in (
        ("ca", ca), ("cert", user.certificate), ("key", user.key))}  # fmt: skip
    cluster = {"server": server, "certificate-authority-data": encoded["ca"]}
    credentials = {
        "client-certificate-data": encoded["cert"],
        "client-key-data": encoded["key"],
    }
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": credentials}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )


def _name(common: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: rsa.RSAPrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _DAY)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
