"""The transport socket of Envoy's Cluster: UpstreamTlsContext to ClusterTls. Called by cluster.

Certificates are verified always. Authorities come inline or from a file that the gateway's config allows; a client
certificate and its key come from such files only: a private key has no business on the wire.
"""

from __future__ import annotations

from typing import Final

from envoy.config.core.v3.base_pb2 import DataSource, TransportSocket
from envoy.extensions.transport_sockets.tls.v3.tls_pb2 import CommonTlsContext, UpstreamTlsContext
from google.protobuf.message import DecodeError

from arion_tds.decode import datasource, leftovers
from arion_tds.decode.case import Case
from arion_tds.model.cluster import ClusterTls

_TLS: Final = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
_RAW: Final = "type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"


def transport(message: TransportSocket, case: Case) -> ClusterTls | None:
    """The TLS settings, or None for plain text (or what is refused: see the Case)."""
    where = "transport_socket.typed_config"
    url = message.typed_config.type_url
    if url == _RAW:
        return None
    if url != _TLS:
        case.refuse(where, f"is of type {url!r}: only UpstreamTlsContext and RawBuffer are supported")
        return None
    try:
        context = UpstreamTlsContext.FromString(message.typed_config.value)
    except DecodeError:
        case.refuse(where, "cannot be decoded as UpstreamTlsContext")
        return None
    leftovers.judge(context, where, ("common_tls_context", "sni"), ("max_session_keys", "enforce_rsa_key_usage"), case)
    common, at = context.common_tls_context, f"{where}.common_tls_context"
    leftovers.judge(common, at, ("tls_certificates", "validation_context", "alpn_protocols"), ("key_log",), case)
    if common.alpn_protocols and "http/1.1" not in common.alpn_protocols:
        case.refuse(f"{at}.alpn_protocols", "leave out http/1.1, which is what is spoken to clusters")
    ca_file, ca_data = _authorities(common, at, case)
    cert_file, key_file = _certificate(common, at, case)
    return ClusterTls(ca_file=ca_file, ca_data=ca_data, cert_file=cert_file, key_file=key_file, sni=context.sni or None)


def _authorities(common: CommonTlsContext, at: str, case: Case) -> tuple[str | None, str | None]:
    validation, where = common.validation_context, f"{at}.validation_context"
    leftovers.judge(validation, where, ("trusted_ca", "system_root_certs"), (), case)
    if not validation.HasField("trusted_ca"):
        if not validation.HasField("system_root_certs"):
            case.warn(where, "names no authority: certificates are verified with the system's")
        return None, None
    source = validation.trusted_ca
    if source.WhichOneof("specifier") == "filename":
        return _file(source, f"{where}.trusted_ca", case), None
    text = datasource.text(source, f"{where}.trusted_ca", case)
    if text is not None and "-----BEGIN CERTIFICATE-----" not in text:
        case.refuse(f"{where}.trusted_ca", "holds no PEM certificate")
    return None, text


def _certificate(common: CommonTlsContext, at: str, case: Case) -> tuple[str | None, str | None]:
    if not common.tls_certificates:
        return None, None
    where = f"{at}.tls_certificates[0]"
    if len(common.tls_certificates) > 1:
        case.refuse(f"{at}.tls_certificates", "are more than one: one is supported")
    one = common.tls_certificates[0]
    leftovers.judge(one, where, ("certificate_chain", "private_key"), ("ocsp_staple",), case)
    chain = _file(one.certificate_chain, f"{where}.certificate_chain", case)
    return chain, _file(one.private_key, f"{where}.private_key", case)


def _file(source: DataSource, where: str, case: Case) -> str | None:
    """The path of a file that may be read, and can be."""
    if source.WhichOneof("specifier") != "filename":
        case.refuse(where, "must be a `filename` that the gateway's config allows")
        return None
    if datasource.text(source, where, case) is None:
        return None
    return case.rules.path(source.filename)
