"""The server's side of one type: conversations from the issue trackers of other control planes, and the spec's rules.

`client` lines are Asks, `sends` are pulled responses; content is a plain dict.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane_example.snapshot import Held
from control_plane_example.subscription import MAX_UNANSWERED, SPLIT_BYTES, Answer, Ask, Outgoing, Subscription

TYPE = "type/T"
A, B, C = "s/c/a", "s/c/b", "o/c/c"


def held(version: str, payload: bytes | None = None) -> Held:
    return Held(version, version.encode() if payload is None else payload)


class Talk:
    """One client of one type, and the content behind it."""

    def __init__(self, catalog: dict[str, str] | None = None, scopes: frozenset[str] | None = None) -> None:
        self.catalog = {name: held(version) for name, version in (catalog or {}).items()}
        self.sub = Subscription(TYPE, scopes)
        self.nonce = 0

    def asks(
        self,
        *subscribe: str,
        unsub: tuple[str, ...] = (),
        have: dict[str, str] | None = None,
        nonce: str = "",
        error: str | None = None,
    ) -> Answer | None:
        return self.sub.request(Ask(TYPE, subscribe, unsub, have or {}, nonce, error), self.catalog)

    def change(self, versions: dict[str, str | None]) -> None:
        for name, version in versions.items():
            if version is None:
                self.catalog.pop(name, None)
            else:
                self.catalog[name] = held(version)
        self.sub.changed(versions)

    def pull(self) -> Outgoing | None:
        self.nonce += 1
        return self.sub.pull_updates(self.catalog, str(self.nonce)) or self.sub.pull_removals(str(self.nonce))

    def sends(self) -> list[str]:
        """Everything due, as `name@version`, `-name` for removals, `empty` for an empty response."""
        said: list[str] = []
        while (out := self.pull()) is not None:
            said += [f"{name}@{each.version}" for name, each in out.resources]
            said += [f"-{name}" for name in out.removed]
            if not out.resources and not out.removed:
                said.append("empty")
            self.asks(nonce=out.nonce)
        return said


def test_a_wildcard_gets_everything_and_then_only_what_changes() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks("*")
    assert talk.sends() == [f"{A}@1", f"{B}@1"]
    talk.change({A: "2"})
    assert talk.sends() == [f"{A}@2"]


def test_a_change_after_the_first_answer_is_sent_without_being_asked_for() -> None:
    """go-control-plane#458: the first answer was immediate, and then no watch was left."""
    talk = Talk({A: "1"})
    talk.asks(A)
    assert talk.sends() == [f"{A}@1"]
    talk.change({A: "2"})
    assert talk.sends() == [f"{A}@2"]


def test_a_first_request_that_names_nothing_is_a_wildcard() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks()
    assert talk.sends() == [f"{A}@1", f"{B}@1"]


def test_the_legacy_wildcard_outlives_a_named_subscription() -> None:
    """cilium#45288: {} then subscribe A: B is still watched; without `*` it is not, and A's end makes no wildcard."""
    talk = Talk({A: "1", B: "1"})
    talk.asks()
    talk.sends()
    talk.asks(A)
    assert talk.sends() == [f"{A}@1"]
    talk.change({B: "2"})
    assert talk.sends() == [f"{B}@2"]
    talk.asks(unsub=("*",))
    talk.change({B: "3"})
    assert talk.sends() == []
    talk.asks(unsub=(A,))
    talk.change({A: "2", B: "4"})
    assert talk.sends() == []


def test_an_empty_list_after_names_is_never_a_wildcard() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks(A)
    talk.sends()
    talk.asks(unsub=(A,))
    talk.asks()
    talk.change({B: "2"})
    assert talk.sends() == []


def test_unsubscribing_the_wildcard_keeps_explicit_names() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks("*", A)
    talk.sends()
    talk.asks(unsub=("*",))
    talk.change({A: "2", B: "2"})
    assert talk.sends() == [f"{A}@2"]


def test_an_unsubscribed_name_that_the_wildcard_covers_is_answered_with_its_resource() -> None:
    talk = Talk({A: "1"})
    talk.asks("*", A, B)
    assert talk.sends() == [f"{A}@1", f"-{B}"]
    talk.asks(unsub=(A,))
    assert talk.sends() == [f"{A}@1"]
    talk.asks(unsub=(B,))
    assert talk.sends() == [f"-{B}"]


def test_subscribing_again_sends_again() -> None:
    """go-control-plane#1450: the client may have dropped what it subscribes to again."""
    talk = Talk({A: "1"})
    talk.asks(A)
    assert talk.sends() == [f"{A}@1"]
    talk.asks(A)
    assert talk.sends() == [f"{A}@1"]


def test_unsubscribe_and_subscribe_in_two_requests_sends_again() -> None:
    """go-control-plane#431, java-control-plane#339, grpc-go#8125."""
    talk = Talk({A: "1"})
    talk.asks(A)
    talk.sends()
    talk.asks(unsub=(A,))
    talk.asks(A)
    assert talk.sends() == [f"{A}@1"]


def test_unsubscribe_and_subscribe_in_one_request_sends_again() -> None:
    talk = Talk({A: "1"})
    talk.asks(A)
    talk.sends()
    talk.asks(A, unsub=(A,))
    assert talk.sends() == [f"{A}@1"]


def test_subscribing_to_the_wildcard_again_sends_everything_again() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks("*")
    talk.sends()
    talk.asks("*")
    assert talk.sends() == [f"{A}@1", f"{B}@1"]


def test_a_missing_name_is_reported_as_removed_and_sent_when_it_comes() -> None:
    """go-control-plane#488 and #565: the report ended the subscription, or never came."""
    talk = Talk()
    talk.asks(A)
    assert talk.sends() == [f"-{A}"]
    talk.change({A: "1"})
    assert talk.sends() == [f"{A}@1"]


def test_a_removal_does_not_end_the_subscription_and_the_same_version_may_come_back() -> None:
    talk = Talk({A: "1"})
    talk.asks(A)
    talk.sends()
    talk.change({A: None})
    assert talk.sends() == [f"-{A}"]
    talk.change({A: "1"})
    assert talk.sends() == [f"{A}@1"]


def test_a_reconnect_sends_what_differs_and_removes_what_went_while_it_was_away() -> None:
    """istio#41494, java-control-plane#463, kmesh#415: deleted while disconnected, leaked for ever."""
    talk = Talk({A: "2", B: "1"})
    talk.asks("*", have={A: "1", B: "1", "s/c/gone": "7"})
    assert talk.sends() == [f"{A}@2", "-s/c/gone"]


def test_a_reconnect_with_nothing_new_is_answered_with_an_empty_response() -> None:
    """kumahq/kuma#2171: the restarted control plane stayed silent, the client waited."""
    talk = Talk({A: "1"})
    talk.asks("*", have={A: "1"})
    assert talk.sends() == ["empty"]


@pytest.mark.parametrize("wanted", [("*",), ()])
def test_the_first_wildcard_request_is_answered_when_there_is_nothing(wanted: tuple[str, ...]) -> None:
    talk = Talk()
    talk.asks(*wanted)
    assert talk.sends() == ["empty"]


def test_a_reconnect_by_names_gets_only_what_differs() -> None:
    talk = Talk({A: "1", B: "2"})
    talk.asks(A, B, have={A: "1", B: "1"})
    assert talk.sends() == [f"{B}@2"]


def test_versions_in_a_later_request_are_ignored() -> None:
    talk = Talk({A: "1"})
    talk.asks("*")
    talk.sends()
    talk.asks(have={A: "0", B: "9"})
    assert talk.sends() == []


def test_a_wildcard_client_that_lists_what_it_has_stays_a_wildcard() -> None:
    """envoy#16063: names belong into the versions map; with `*` beside them both hold."""
    talk = Talk({A: "1", B: "1"})
    talk.asks("*", have={A: "1", B: "1"})
    talk.sends()
    talk.change({C: "1"})
    assert talk.sends() == [f"{C}@1"]
    assert talk.sub.names == set()


def test_a_change_of_one_resource_leaves_the_others_alone() -> None:
    """istio#34949, istio#36273: a partial push was taken as the full state."""
    talk = Talk({A: "1", B: "1"})
    talk.asks("*")
    talk.sends()
    talk.change({A: "2"})
    assert talk.sends() == [f"{A}@2"]


def test_a_rejected_resource_is_not_sent_again_until_it_changes() -> None:
    """go-control-plane#962, consul#12195, cilium#8149: NACK, the same again at once, NACK: a hot loop."""
    talk = Talk({A: "bad"})
    talk.asks("*")
    first = talk.pull()
    assert first is not None
    answer = talk.asks(nonce=first.nonce, error=f"{A}: no backend")
    assert answer is not None
    assert answer.blamed == (A,)
    assert talk.sends() == []
    talk.change({A: "good"})
    assert talk.sends() == [f"{A}@good"]


def test_after_a_reconnect_a_rejected_resource_is_sent_once_more() -> None:
    talk = Talk({A: "bad"})
    talk.asks("*", have={A: "old"})
    assert talk.sends() == [f"{A}@bad"]


def test_a_nack_blames_the_names_it_speaks_of_and_otherwise_all() -> None:
    talk = Talk({"s/c/a": "1", "s/c/a.b": "1", "s/c/ab": "1"})
    talk.asks("*")
    first = talk.pull()
    assert first is not None
    answer = talk.asks(nonce=first.nonce, error="resource s/c/a.b: wrong. Others are fine")
    assert answer is not None
    assert answer.blamed == ("s/c/a.b",)
    talk.change({"s/c/a": "2", "s/c/ab": "2"})
    second = talk.pull()
    assert second is not None
    answer = talk.asks(nonce=second.nonce, error="no")
    assert answer is not None
    assert answer.blamed == ("s/c/a", "s/c/ab")


def test_a_stale_nonce_voids_no_subscription_change() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks(A)
    talk.sends()
    assert talk.asks(B, nonce="of another stream") is None
    assert talk.sends() == [f"{B}@1"]


def test_a_nonce_is_answered_once() -> None:
    talk = Talk({A: "1"})
    talk.asks("*")
    out = talk.pull()
    assert out is not None
    assert talk.asks(nonce=out.nonce) is not None
    assert talk.asks(nonce=out.nonce, error="late") is None
    assert talk.sub.nack_count == 0


def test_names_may_ride_on_an_ack() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks(A)
    out = talk.pull()
    assert out is not None
    answer = talk.asks(B, unsub=(A,), nonce=out.nonce)
    assert answer == Answer(TYPE, out.nonce, {A: "1"}, ())
    assert talk.sends() == [f"{B}@1"]
    talk.change({A: "2"})
    assert talk.sends() == []


def test_names_that_were_never_subscribed_are_unsubscribed_in_silence() -> None:
    talk = Talk({A: "1"})
    talk.asks(A)
    talk.sends()
    talk.asks(unsub=("s/c/phantom", "x/y/*"))
    assert talk.sends() == []
    talk.change({A: "2"})
    assert talk.sends() == [f"{A}@2"]


def test_an_unsubscribe_before_the_first_response_counts() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks(A, B)
    talk.asks(unsub=(A,))
    assert talk.sends() == [f"{B}@1"]


def test_what_was_due_to_the_wildcard_is_not_sent_after_it_was_unsubscribed() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks("*", B)
    talk.change({A: "2"})
    talk.asks(unsub=("*",))
    assert talk.sends() == [f"{B}@1"]
    talk.asks("s/c/*")
    talk.asks(unsub=("s/c/*",))
    assert talk.sends() == [f"{B}@1"]
    assert set(talk.sub.sent) == {B}


def test_what_a_client_claims_beyond_its_scopes_is_none_of_the_streams_business() -> None:
    talk = Talk({C: "2"}, scopes=frozenset({"s/c"}))
    talk.asks("*", have={C: "1", "o/c/gone": "1"})
    assert talk.sends() == ["empty"]
    assert talk.sub.sent == {}


def test_a_glob_takes_what_is_below_its_slash_and_nothing_else() -> None:
    talk = Talk({A: "1", "s/cx/a": "1", C: "1"})
    talk.asks("s/c/*")
    assert talk.sends() == [f"{A}@1"]
    talk.change({"s/c/deep/er": "1", "s/cx/b": "1"})
    assert talk.sends() == ["s/c/deep/er@1"]
    talk.change({A: None})
    assert talk.sends() == [f"-{A}"]


def test_an_empty_glob_is_reported_by_its_own_name_and_fills_later() -> None:
    """TP1; go-control-plane answers an empty glob with nothing."""
    talk = Talk({A: "1"})
    talk.asks("n/n/*")
    assert talk.sends() == ["-n/n/*"]
    talk.change({"n/n/x": "1"})
    assert talk.sends() == ["n/n/x@1"]


def test_a_glob_that_fills_before_the_answer_is_not_reported_as_empty() -> None:
    talk = Talk()
    talk.asks("n/n/*")
    talk.change({"n/n/x": "1"})
    assert talk.sends() == ["n/n/x@1"]


def test_several_globs_and_names_live_side_by_side() -> None:
    talk = Talk({A: "1", B: "1", C: "1", "n/n/x": "1"})
    talk.asks("s/c/*", "n/n/*", C)
    assert talk.sends() == [f"{name}@1" for name in sorted([A, B, C, "n/n/x"])]
    talk.asks(unsub=("s/c/*",))
    talk.change({A: "2", C: "2", "n/n/x": "2"})
    assert talk.sends() == ["n/n/x@2", f"{C}@2"]


def test_declared_scopes_narrow_the_wildcard_but_not_names() -> None:
    talk = Talk({A: "1", C: "1", "s/cc/a": "1"}, scopes=frozenset({"s/c"}))
    talk.asks("*", C)
    assert talk.sends() == [f"{C}@1", f"{A}@1"]
    talk.change({"s/cc/a": "2", "s/c/new": "1"})
    assert talk.sends() == ["s/c/new@1"]


def test_unread_changes_are_merged_into_the_newest_state() -> None:
    talk = Talk({A: "0"})
    talk.asks("*")
    talk.sends()
    for version in range(1, 1001):
        talk.change({A: str(version), B: "1"})
    talk.change({B: None})
    assert talk.sends() == [f"{A}@1000"]


def test_a_resource_that_returns_to_what_was_sent_is_not_sent() -> None:
    talk = Talk({A: "1"})
    talk.asks("*")
    talk.sends()
    talk.change({A: "2"})
    talk.change({A: "1"})
    assert talk.sends() == []


def test_equal_version_with_other_bytes_is_sent() -> None:
    talk = Talk({A: "1"})
    talk.asks("*")
    talk.sends()
    talk.catalog[A] = held("1", b"other")
    talk.sub.changed([A])
    assert talk.sends() == [f"{A}@1"]


def test_large_content_is_split_at_about_a_mebibyte_and_nothing_is_lost() -> None:
    talk = Talk()
    talk.catalog = {f"s/c/{number}": held("1", bytes(100_000)) for number in range(35)}
    talk.catalog["s/c/huge"] = held("1", bytes(3 * SPLIT_BYTES))
    talk.asks("*")
    seen: list[str] = []
    while (out := talk.pull()) is not None:
        size = sum(len(each.payload) for _, each in out.resources)
        assert size <= SPLIT_BYTES or len(out.resources) == 1
        seen += [name for name, _ in out.resources]
        talk.asks(nonce=out.nonce)
    assert sorted(seen) == sorted(talk.catalog)


def test_removals_travel_in_a_response_of_their_own_after_the_updates() -> None:
    talk = Talk({A: "1", B: "1"})
    talk.asks("*")
    talk.sends()
    talk.change({A: None, B: "2"})
    first, second = talk.pull(), talk.pull()
    assert first is not None
    assert second is not None
    assert [name for name, _ in first.resources] == [B]
    assert first.removed == ()
    assert second.removed == (A,)
    assert second.resources == ()


def test_a_client_that_answers_nothing_is_sent_no_more_than_the_window() -> None:
    talk = Talk({A: "0"})
    talk.asks("*")
    sent: list[Outgoing] = []
    for version in range(1, 200):
        out = talk.pull()
        if out is not None:
            sent.append(out)
        talk.change({A: str(version)})
    assert len(sent) == MAX_UNANSWERED
    talk.asks(nonce=sent[0].nonce)
    out = talk.pull()
    assert out is not None
    assert out.resources[0][1].version == "199"


def test_a_name_that_keeps_changing_does_not_hold_back_the_others() -> None:
    talk = Talk({f"s/c/{number}": "1" for number in range(5)})
    for name in talk.catalog:
        talk.catalog[name] = held("1", bytes(SPLIT_BYTES))
    talk.asks("*")
    seen: set[str] = set()
    for version in range(5):
        out = talk.pull()
        assert out is not None
        seen.update(name for name, _ in out.resources)
        talk.catalog["s/c/0"] = held(str(version), bytes(SPLIT_BYTES))
        talk.sub.changed(["s/c/0"])
    assert seen == set(talk.catalog)


NAMES = st.sampled_from([A, B, C, "s/c/d"])
WANTED = st.sampled_from([A, B, C, "s/c/d", "*", "s/c/*", "o/c/*", "n/n/*"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), NAMES, st.sampled_from("123")),
        st.tuples(st.just("remove"), NAMES, st.none()),
        st.tuples(st.just("sub"), WANTED, st.none()),
        st.tuples(st.just("unsub"), WANTED, st.none()),
        st.tuples(st.just("pull"), st.none(), st.booleans()),
    ),
    max_size=30,
)


def matches(wanted: set[str], name: str) -> bool:
    return name in wanted or "*" in wanted or any(name.startswith(each[:-1]) for each in wanted if each[-2:] == "/*")


@settings(max_examples=150, deadline=None)
@given(STEPS, st.dictionaries(NAMES, st.sampled_from("123")))
def test_after_quiet_the_client_has_exactly_what_it_wants(
    steps: list[tuple[str, str, str]], had: dict[str, str]
) -> None:
    """Whatever was subscribed, changed and half read: the client, which only applies responses, agrees in the end."""
    talk = Talk({A: "1", C: "2"})
    wanted = {"*"}
    has = dict(had)

    def read(*, accept: bool) -> bool:
        out = talk.pull()
        if out is None:
            return False
        assert not (out.resources and out.removed)
        for name, each in out.resources:
            if matches(wanted, name):
                has[name] = each.version
        for name in out.removed:
            has.pop(name, None)
        talk.asks(nonce=out.nonce, error=None if accept else "no")
        return True

    talk.asks("*", have=had)
    for step, what, how in steps:
        if step == "set":
            talk.change({what: how})
        elif step == "remove":
            talk.change({what: None})
        elif step == "sub":
            wanted.add(what)
            talk.asks(what)
        elif step == "unsub":
            wanted.discard(what)
            for name in [name for name in has if not matches(wanted, name)]:
                del has[name]
            talk.asks(unsub=(what,))
        else:
            read(accept=bool(how))
    while read(accept=True):
        pass
    expected = {name: each.version for name, each in talk.catalog.items() if matches(wanted, name)}
    assert has == expected
    assert talk.sends() == []
