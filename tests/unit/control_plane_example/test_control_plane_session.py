"""All types on one stream: order, nonces, limits."""

from __future__ import annotations

from control_plane_example.documents import TYPE_URLS
from control_plane_example.session import MAX_TYPES, ORDER, Declared, Session
from control_plane_example.snapshot import Changes, Held, Key, Origin, Snapshot
from control_plane_example.subscription import Answer, Ask

CLUSTER, ENDPOINTS, LISTENER, SOURCE, SERVER, TOOL, TOOLKIT = ORDER


def publish(snapshot: Snapshot, *entries: tuple[str, str, str], fleet: str = "arion") -> Changes:
    return snapshot.apply(
        [(Key(fleet, url, name), Held(version, b"x")) for url, name, version in entries], [], Origin.PUT
    )


def withdraw(snapshot: Snapshot, *entries: tuple[str, str]) -> Changes:
    return snapshot.apply([], [Key("arion", url, name) for url, name in entries], Origin.PUT)


def spoken(session: Session, snapshot: Snapshot) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    while (out := session.pull(snapshot)) is not None:
        said += [(out.type_url, name) for name, _ in out.resources]
        said += [(out.type_url, f"-{name}") for name in out.removed]
        session.request(Ask(out.type_url, nonce=out.nonce), snapshot)
    return said


def test_what_toolkits_refer_to_comes_before_toolkits_and_removals_come_last_in_the_other_direction() -> None:
    snapshot, session = Snapshot(), Session(1, Declared())
    publish(snapshot, (TOOLKIT, "s/c/k", "1"), (TOOL, "s/c/t.t", "1"), (SERVER, "s/c/m", "1"), (SOURCE, "s/c/o", "1"))
    for url in reversed(ORDER):
        session.request(Ask(url, ("*",)), snapshot)
    assert spoken(session, snapshot) == [(SOURCE, "s/c/o"), (SERVER, "s/c/m"), (TOOL, "s/c/t.t"), (TOOLKIT, "s/c/k")]
    for changes in (
        withdraw(snapshot, (SOURCE, "s/c/o"), (TOOLKIT, "s/c/k"), (TOOL, "s/c/t.t")),
        publish(snapshot, (SERVER, "s/c/m", "2"), (TOOLKIT, "s/c/k2", "1")),
    ):
        session.changed(changes["arion"])
    assert spoken(session, snapshot) == [
        (SERVER, "s/c/m"), (TOOLKIT, "s/c/k2"), (TOOLKIT, "-s/c/k"), (TOOL, "-s/c/t.t"), (SOURCE, "-s/c/o"),
    ]  # fmt: skip


def test_clusters_come_before_the_listeners_that_send_to_them_and_go_after_them() -> None:
    snapshot, session = Snapshot(), Session(1, Declared(scopes=("s/c",)))
    entries = ((LISTENER, "front"), (ENDPOINTS, "backends"), (CLUSTER, "service"), (TOOL, "s/c/t.t"))
    publish(snapshot, *((url, name, "1") for url, name in entries))
    for url in ORDER:
        session.request(Ask(url, ("*",)), snapshot)
    order = [(CLUSTER, "service"), (ENDPOINTS, "backends"), (LISTENER, "front"), (TOOL, "s/c/t.t")]
    assert spoken(session, snapshot)[: len(order)] == order
    session.changed(withdraw(snapshot, *entries)["arion"])
    assert spoken(session, snapshot) == [(url, f"-{name}") for url, name in reversed(order)]


def test_types_are_walled_off_from_each_other() -> None:
    snapshot, session = Snapshot(), Session(1, Declared())
    publish(snapshot, (TOOL, "s/c/t.t", "1"), (SERVER, "s/c/m", "1"))
    session.request(Ask(TOOL, ("*",)), snapshot)
    session.request(Ask(SERVER, ("*",)), snapshot)
    server = session.pull(snapshot)
    assert server is not None
    answer = session.request(Ask(SERVER, nonce=server.nonce, error="no"), snapshot)
    assert isinstance(answer, Answer)
    tool = session.pull(snapshot)
    assert tool is not None
    assert tool.type_url == TOOL
    # A nonce of one type is none of another's.
    assert session.request(Ask(SERVER, nonce=tool.nonce), snapshot) is None


def test_two_responses_without_a_change_of_versions_have_different_nonces() -> None:
    """cilium#45288: a nonce that is the cache's version is shared by two responses."""
    snapshot, session = Snapshot(), Session(7, Declared())
    publish(snapshot, (TOOL, "s/c/t.t", "1"))
    nonces: list[str] = []
    for _ in range(3):
        session.request(Ask(TOOL, ("s/c/t.t",)), snapshot)
        out = session.pull(snapshot)
        assert out is not None
        nonces.append(out.nonce)
    assert nonces == ["7-1", "7-2", "7-3"]
    assert Session(8, Declared()).next_nonce() not in nonces


def test_the_fleet_is_the_nodes_cluster_and_arion_without_one() -> None:
    snapshot = Snapshot()
    publish(snapshot, (TOOL, "s/c/t.t", "1"))
    publish(snapshot, (TOOL, "s/c/t.other", "1"), fleet="edge")
    for cluster, name in (("", "s/c/t.t"), ("arion", "s/c/t.t"), ("edge", "s/c/t.other")):
        session = Session(1, Declared(cluster=cluster))
        session.request(Ask(TOOL, ("*",)), snapshot)
        assert spoken(session, snapshot) == [(TOOL, name)]


def test_a_type_nobody_publishes_is_answered_with_an_empty_response() -> None:
    session = Session(1, Declared())
    session.request(Ask("type.googleapis.com/envoy.config.cluster.v3.Cluster", ("*",)), Snapshot())
    out = session.pull(Snapshot())
    assert out is not None
    assert out.type_url == "type.googleapis.com/envoy.config.cluster.v3.Cluster"


def test_a_request_without_a_type_ends_the_stream() -> None:
    assert "type_url" in str(Session(1, Declared()).request(Ask(""), Snapshot()))


def test_a_stream_may_not_ask_for_types_without_end() -> None:
    session, snapshot = Session(1, Declared()), Snapshot()
    for number in range(MAX_TYPES):
        assert session.request(Ask(f"t/{number}", ("*",)), snapshot) is None
    assert f"more than {MAX_TYPES}" in str(session.request(Ask("t/one-more", ("*",)), snapshot))


def test_many_types_on_one_stream_are_all_served() -> None:
    """go-control-plane#875: more than ten types and concurrent sets ended in a deadlock."""
    session, snapshot = Session(1, Declared()), Snapshot()
    urls = [f"t/{number}" for number in range(20)] + list(TYPE_URLS.values())
    for url in urls:
        session.request(Ask(url, ("*",)), snapshot)
        for changed in publish(snapshot, (url, "s/c/x", "1")).values():
            session.changed(changed)
    assert {url for url, _ in spoken(session, snapshot)} == set(urls)
