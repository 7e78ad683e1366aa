"""TLS towards MCP listeners: whom a command trusts, and the certificate that it shows.

In: `--ca`, `--cert`, `--key`. Out: a context for the client of `asking`, or AskError with the option that is wrong.
"""

from __future__ import annotations

import argparse
import ssl

from arion_tds.errors import AskError


def options(parser: argparse.ArgumentParser) -> None:
    """Files, as `curl` takes them."""
    parser.add_argument("--ca", metavar="FILE", help="authorities to trust (default: $SSL_CERT_FILE, or the system's)")
    parser.add_argument("--cert", metavar="FILE", help="our certificate, for listeners that ask for one")
    parser.add_argument("--key", metavar="FILE", help="its private key (default: in the file of the certificate)")


def context(chosen: argparse.Namespace) -> ssl.SSLContext | None:
    """None: nothing is said, and the usual one is good."""
    if chosen.ca is chosen.cert is chosen.key is None:
        return None
    if chosen.cert is None and chosen.key is not None:
        raise AskError("--key is the key of a certificate: name that with --cert FILE")
    try:
        made = ssl.create_default_context(cafile=chosen.ca)
    except OSError as error:
        raise AskError(f"--ca {chosen.ca}: {error.strerror or error}") from error
    if chosen.cert is not None:
        try:
            made.load_cert_chain(chosen.cert, chosen.key)
        except OSError as error:
            key = "" if chosen.key is None else f" with --key {chosen.key}"
            raise AskError(f"--cert {chosen.cert}{key}: {error.strerror or error}") from error
    return made
