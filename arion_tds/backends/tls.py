"""The TLS context of a cluster: made once, when the cluster is configured.

In: ClusterTls. Out: an SSLContext that verifies certificate and host name. Called by clusters, and when the
files were rotated. Reads the PEM files.
"""

from __future__ import annotations

import ssl

from arion_tds.model.cluster import ClusterTls


def context(tls: ClusterTls) -> ssl.SSLContext:
    """A client context: the given authorities (or the system's), the client certificate if any, TLS 1.2 at least.

    Raises ValueError with a sentence that names the file at fault.
    """
    try:
        made = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca_data)
    except (OSError, ValueError) as error:
        which = "the authorities given" if tls.ca_file is None else f"ca_file {tls.ca_file!r}"
        raise ValueError(f"{which} cannot be used: {_reason(error)}") from error
    made.set_alpn_protocols(["http/1.1"])
    if tls.cert_file is None:
        return made
    try:
        # Without a password of its own OpenSSL would ask for one on the terminal.
        made.load_cert_chain(tls.cert_file, tls.key_file, password=b"")
    except (OSError, ValueError) as error:
        said = f"cert_file {tls.cert_file!r} with key_file {tls.key_file!r} cannot be used: {_reason(error)}"
        raise ValueError(said) from error
    return made


def renew(made: ssl.SSLContext, tls: ClusterTls) -> None:
    """Read the files anew into a context that is in use: handshakes from now on go by them.

    Authorities are only ever added: one that is no longer to be trusted needs a restart. Raises as `context` does, and
    then nothing has changed.
    """
    context(tls)
    if tls.ca_file is not None:
        made.load_verify_locations(tls.ca_file)
    if tls.cert_file is not None:
        made.load_cert_chain(tls.cert_file, tls.key_file, password=b"")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
