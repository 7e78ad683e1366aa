"""Where MCP servers named over xDS may be: a policy on host names and on the addresses really connected to. Pure.

In: allow and deny rules of the config (CIDR or host name; a leading dot matches every name below). Out: a refusal that
names its rule, or None. Called by http for every new connection, with the address about to be connected to, so that
a name that resolves to something else the second time gains nothing.

A control plane's data must not turn the gateway into a way to its own machine's credentials: link-local addresses and
the metadata services of the clouds are refused unless an allow rule names just that range.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterable
from typing import Final

from arion_tds.model.problem import Problem

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

BUILT_IN: Final[tuple[Network, ...]] = tuple(
    map(
        ipaddress.ip_network,
        (
            "169.254.0.0/16",  # link-local, and the metadata service of most clouds
            "fe80::/10",
            "fd00:ec2::254/128",  # AWS
            "fd20:ce::254/128",  # Google
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure
            "192.0.0.192/32",  # Oracle
        ),
    )
)
METADATA_HOSTS: Final = frozenset({"metadata", "metadata.google.internal", "metadata.goog", "instance-data"})

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """One list: networks, exact hosts, and suffixes (with their leading dot)."""

    networks: tuple[Network, ...] = ()
    hosts: tuple[str, ...] = ()

    def host(self, host: str) -> str | None:
        """The rule that the host name falls under."""
        for rule in self.hosts:
            if host == rule or (rule.startswith(".") and host.endswith(rule)):
                return rule
        return None

    def network(self, addresses: tuple[Address, ...]) -> Network | None:
        """The rule that one of the addresses falls under."""
        for rule in self.networks:
            if any(address in rule for address in addresses if address.version == rule.version):
                return rule
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Deny wins; then, if anything is allowed by name or range, only that; the built-in refusals stand in any case."""

    allow: Rules = Rules()
    deny: Rules = Rules()

    def host_problem(self, host: str) -> str | None:
        """Why the host name alone is refused, before it is resolved."""
        host = _normal(host)
        if (rule := self.deny.host(host)) is not None:
            return f"host {host} is denied by rule {rule!r} (deny_addresses)"
        if host in METADATA_HOSTS and self.allow.host(host) is None:
            return f"host {host} is a cloud's metadata service (built-in rule; allow_addresses may name it)"
        return None

    def problem(self, host: str, address: str) -> str | None:
        """Why a connection to this address on behalf of `host` is refused, or None."""
        found = self.host_problem(host)
        if found is not None:
            return found
        host = _normal(host)
        addresses = _meant(address)
        if not addresses:
            return f"{address} is not an IP address"
        if (denied := self.deny.network(addresses)) is not None:
            return f"address {address} of {host} is denied by rule {str(denied)!r} (deny_addresses)"
        allowed = self.allow.network(addresses)
        for rule in BUILT_IN:
            if any(each in rule for each in addresses if each.version == rule.version) and not _inside(allowed, rule):
                return f"address {address} of {host} is link-local or a metadata service (built-in rule {str(rule)!r})"
        if (self.allow.networks or self.allow.hosts) and allowed is None and self.allow.host(host) is None:
            return f"neither host {host} nor its address {address} is under a rule of allow_addresses"
        return None


DEFAULT_ADDRESSES: Final = AddressPolicy()


def shown(url: str) -> str:
    """The URL as it may stand in logs, verdicts and admin pages: a query is where keys are kept, so never that."""
    bare, question, _ = url.partition("?")
    return f"{bare}?…" if question else bare


def parse(allow: Iterable[str] = (), deny: Iterable[str] = ()) -> AddressPolicy | list[Problem]:
    """The policy of two lists of rules, or everything that is wrong with them."""
    problems: list[Problem] = []
    policy = AddressPolicy(
        _rules(allow, "allow_addresses", problems),
        _rules(deny, "deny_addresses", problems),
    )
    return problems or policy


def _rules(texts: Iterable[str], where: str, problems: list[Problem]) -> Rules:
    networks: list[Network] = []
    hosts: list[str] = []
    for at, text in enumerate(texts):
        rule = text.strip().lower().removeprefix("*")
        try:
            networks.append(ipaddress.ip_network(rule))
            continue
        except ValueError as error:
            if "/" in rule or ":" in rule or not rule.strip("."):
                problems.append(Problem(f"{where}[{at}]", f"{text!r} is neither a network nor a host name: {error}"))
                continue
        hosts.append(_normal(rule))
    return Rules(tuple(networks), tuple(hosts))


def _normal(host: str) -> str:
    return host.lower().rstrip(".")


def _meant(text: str) -> tuple[Address, ...]:
    """The address and every IPv4 address that it stands for (mapped, NAT64, 6to4, compatible)."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ()
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    address = ipaddress.IPv6Address(int(address))  # without a zone
    inner: list[Address] = [address]
    if address.ipv4_mapped is not None:
        inner.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address in _NAT64 or address in _COMPATIBLE:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(inner)


def _inside(allowed: Network | None, rule: Network) -> bool:
    if isinstance(allowed, ipaddress.IPv4Network) and isinstance(rule, ipaddress.IPv4Network):
        return allowed.subnet_of(rule)
    if isinstance(allowed, ipaddress.IPv6Network) and isinstance(rule, ipaddress.IPv6Network):
        return allowed.subnet_of(rule)
    return False
