"""What a process shows to the others of its run: the token, and over a network a certificate too.

Over a unix socket only the user's own processes can call, and the token says which run they belong to. Over TCP both sides have a
certificate of the run's own authority (mutual TLS 1.3), which says whether they are the head or a worker. Whoever has none gets no further.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import ssl
import tempfile

HEAD, WORKER = "head.everstep", "worker.everstep"  # names in certificates; hosts may be called anything

_PREFIX = "everstep1."


@dataclasses.dataclass(frozen=True)
class Credentials:
    """token: the secret of the run. authority, certificate, key: PEM; "" where nothing crosses a network."""

    token: str = dataclasses.field(repr=False)
    authority: str = dataclasses.field(default="", repr=False)
    certificate: str = dataclasses.field(default="", repr=False)
    key: str = dataclasses.field(default="", repr=False)

    @staticmethod
    def parse(text: str) -> Credentials:
        """From `str()` of credentials, or a bare token. Raises ValueError."""
        if not text.startswith(_PREFIX):
            return Credentials(text)
        try:
            return Credentials(**json.loads(base64.urlsafe_b64decode(text.removeprefix(_PREFIX))))
        except (binascii.Error, UnicodeDecodeError, json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"these are no credentials of a run: {error}") from None

    def __str__(self) -> str:
        """One line, to be kept as secret as the token."""
        if not self.authority:
            return self.token
        return _PREFIX + base64.urlsafe_b64encode(json.dumps(dataclasses.asdict(self)).encode()).decode()

    @functools.cached_property
    def server(self) -> ssl.SSLContext | None:
        """For connections that are accepted; None: as they are. Raises ssl.SSLError."""
        return self._context(ssl.PROTOCOL_TLS_SERVER) if self.authority else None

    @functools.cached_property
    def client(self) -> ssl.SSLContext | None:
        """For connections that are made; the name of whom to expect (HEAD, WORKER) goes with each. Raises ssl.SSLError."""
        return self._context(ssl.PROTOCOL_TLS_CLIENT) if self.authority else None

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self.authority)
        with tempfile.NamedTemporaryFile("w", prefix="everstep-", suffix=".pem") as file:  # 0600; ssl reads keys from files only
            file.write(self.key + self.certificate)
            file.flush()
            context.load_cert_chain(file.name)
        return context
