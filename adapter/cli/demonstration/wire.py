"""A throw-away PKI: the adapter's certificate, and a front proxy that may speak for the HPA."""

import contextlib
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapter.serving.pki import Authority, Pair
from adapter.serving.tls import TlsFiles
from adapter.sources.clock import SystemClock

SERVER_NAME: Final = "leadtime.leadtime-system.svc"
"""What the aggregator insists on, also here: ``SERVICE.NAMESPACE.svc``."""

FRONT_PROXY: Final = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class Wire:
    """Both ends' credentials."""

    server: TlsFiles
    aggregator: ssl.SSLContext
    serving_ca: bytes


@contextlib.contextmanager
def throw_away_pki() -> Iterator[Wire]:
    """Make certificates that are good for a day, and forget them at the end.

    Their dates are the wall's, not the demo's: TLS asks the machine for the time.
    """
    now = SystemClock().now()
    serving, front_proxy = (Authority(name, now=now, days=1) for name in ("serving", "proxy"))
    with tempfile.TemporaryDirectory(prefix="leadtime-demo-") as folder:
        certificate, key = _written(Path(folder), "server", serving.server([SERVER_NAME]))
        client_ca = Path(folder) / "front-proxy-ca.crt"
        client_ca.write_bytes(front_proxy.certificate)
        aggregator = ssl.create_default_context(cadata=serving.certificate.decode("ascii"))
        aggregator.load_cert_chain(
            *_written(Path(folder), "client", front_proxy.client(FRONT_PROXY))
        )
        yield Wire(TlsFiles(certificate, key, client_ca), aggregator, serving.certificate)


def _written(folder: Path, name: str, pair: Pair) -> tuple[Path, Path]:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.touch(mode=0o600)
    key.write_bytes(pair.key)
    return certificate, key
