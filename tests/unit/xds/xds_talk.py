"""A conversation with the pure session: `hears` is the control plane speaking, `says` what the gateway sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from arion_tds.model.delivery import CATALOG, DeliveryVerdict, Kind
from arion_tds.model.problem import Problem
from arion_tds.xds.session import Session, Ticket
from arion_tds.xds.subscription import Request

Entry = tuple[str, str, str | None, bytes]


class Talk:
    """The session, the deliveries that the handler got, and the tickets whose verdict is still out."""

    def __init__(self, *scopes: str, wildcard: bool = True, kinds: Sequence[Kind] = CATALOG) -> None:
        self.session = Session(scopes or ("s/m",), wildcard=wildcard, kinds=kinds)
        self.content: dict[Kind, dict[str, bytes]] = {kind: {} for kind in kinds}

    def opens(self) -> dict[Kind, Request]:
        """A new stream; its first requests by type."""
        self.session.close()
        self.session.open()
        return {request.kind: request for request in self.says()}

    def says(self) -> list[Request]:
        """Everything that is to be sent now."""
        said = []
        while (request := self.session.next_request()) is not None:
            said.append(request)
        return said

    def reads(
        self,
        kind: Kind,
        nonce: str,
        updates: Mapping[str, str] | Iterable[Entry] = (),
        removed: Iterable[str] = (),
        errors: Iterable[tuple[str, int, str]] = (),
    ) -> Ticket:
        """A response arrives; its verdict is not in. `updates`: version by name, or whole entries."""
        intake = self.session.begin(kind.value, nonce)
        assert intake is not None
        entries = (
            [(name, version, kind.value, version.encode()) for name, version in updates.items()]
            if isinstance(updates, Mapping)
            else updates
        )
        for entry in entries:
            intake.update(*entry)
        for name in removed:
            intake.remove(name)
        for error in errors:
            intake.error(*error)
        return self.session.receive(intake)

    def judges(self, ticket: Ticket, rejects: Mapping[str, str] | None = None) -> None:
        """The handler applies the ticket's delivery, but for what it rejects."""
        bad = rejects or {}
        if ticket.delivery is None:
            assert not bad
            return
        content = self.content[ticket.kind]
        for gone in ticket.delivery.removals:
            content.pop(str(gone), None)
        for update in ticket.delivery.updates:
            if str(update.id) not in bad:
                content[str(update.id)] = update.payload
        self.session.settle(ticket, DeliveryVerdict(tuple(Problem(name, why) for name, why in bad.items())))

    def hears(
        self,
        kind: Kind,
        nonce: str,
        updates: Mapping[str, str] | Iterable[Entry] = (),
        removed: Iterable[str] = (),
        errors: Iterable[tuple[str, int, str]] = (),
        rejects: Mapping[str, str] | None = None,
    ) -> list[Request]:
        """A response arrives and is handled at once; what the gateway says then."""
        self.judges(self.reads(kind, nonce, updates, removed, errors), rejects)
        return self.says()

    def claims(self, kind: Kind) -> dict[str, str]:
        """`initial_resource_versions` of the type on a stream that is opened now."""
        return dict(self.opens()[kind].versions)
