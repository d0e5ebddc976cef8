"""The certificates of one run: one of the head, one of its workers, signed by an authority whose key is forgotten at once."""

from __future__ import annotations

import datetime
import secrets

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from everstep.wire.credentials import HEAD, WORKER, Credentials

_DAYS = 3650  # a run ends before
_SKEW = datetime.timedelta(days=1)  # clocks differ


def make() -> tuple[Credentials, Credentials]:
    """Fresh credentials of the head and of its workers, with the same token."""
    authority_key, token = ec.generate_private_key(ec.SECP256R1()), secrets.token_urlsafe(32)
    authority = _certificate("authority.everstep", authority_key, authority_key)
    head, worker = (_signed(name, authority_key, _text(authority), token) for name in (HEAD, WORKER))
    return head, worker


def _signed(name: str, authority_key: ec.EllipticCurvePrivateKey, authority: str, token: str) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Credentials(token, authority, _text(_certificate(name, key, authority_key)), private.decode())


def _certificate(name: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """With the extensions that strict verifiers want (RFC 5280, 4.2.1)."""
    now = datetime.datetime.now(datetime.UTC)
    is_authority = key is signer
    usage = x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name("authority.everstep"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _text(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
