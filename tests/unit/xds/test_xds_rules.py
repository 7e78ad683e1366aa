"""The rules of incremental xDS that bind a client, one test each, as conversations."""

import pytest
from xds_talk import Talk

from arion_tds.model.delivery import CATALOG, CLUSTERS, Delivered, Delivery, Kind, ResourceId
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.session import INTERNAL_ERROR, Ticket
from arion_tds.xds.subscription import Request

TOOL, SOURCE, SERVER, TOOLKIT = CATALOG
A, B, C = "s/m/x.a", "s/m/x.b", "s/m/x.c"


def ack(kind: Kind, nonce: str) -> Request:
    return Request(kind, nonce=nonce)


# First request, node, reconnect


def test_the_first_request_of_each_type_asks_for_all_without_nonce_error_or_versions(new_talk: type[Talk]) -> None:
    first = new_talk().opens()
    assert set(first) == set(CATALOG)
    for request in first.values():
        assert request.subscribe == ("*",)
        assert request.unsubscribe == ()
        assert (request.nonce, request.error, dict(request.versions)) == ("", "", {})


def test_the_node_goes_with_the_first_request_of_each_stream_only(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m")
    for _ in range(2):
        scopes = [request.scopes for request in talk.opens().values()]
        assert scopes == [("s/m", "t/m"), None, None, None]
    assert [said.scopes for said in talk.hears(TOOL, "n1", {A: "1"})] == [None]


def test_versions_in_use_are_said_on_the_next_stream_and_in_its_first_request_only(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    talk.hears(SOURCE, "n2", {"s/m/x": "9"})
    again = talk.opens()
    assert again[TOOL].versions == {A: "1", B: "1"}
    assert again[SOURCE].versions == {"s/m/x": "9"}
    assert again[TOOLKIT].versions == {}
    assert talk.hears(TOOL, "n1", {A: "2"}) == [ack(TOOL, "n1")]


def test_a_name_that_was_removed_is_not_in_the_map(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    talk.hears(TOOL, "n2", removed=[A])
    assert talk.claims(TOOL) == {B: "1"}


def test_scopes_that_change_while_down_are_those_of_the_next_stream(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m", wildcard=False)
    talk.opens()
    talk.hears(TOOL, "n1", {A: "1", "t/m/x.a": "1"})
    talk.session.close()
    talk.session.set_scopes(["t/m", "u/m"])
    assert talk.says() == []
    first = talk.opens()[TOOL]
    assert first.subscribe == ("t/m/*", "u/m/*")
    assert first.versions == {"t/m/x.a": "1"}


# Nonces, ACK and NACK


def test_every_response_is_answered_once_with_its_own_nonce_in_order(talk: Talk) -> None:
    said = [talk.hears(TOOL, nonce, {A: nonce}) for nonce in ("n1", "n2", "n3")]
    assert said == [[ack(TOOL, "n1")], [ack(TOOL, "n2")], [ack(TOOL, "n3")]]
    assert talk.says() == []


def test_two_responses_that_share_a_nonce_get_an_answer_each(talk: Talk) -> None:
    first, second = talk.reads(TOOL, "n", {A: "1"}), talk.reads(TOOL, "n", {B: "1"})
    talk.judges(second)
    talk.judges(first)
    assert talk.says() == [ack(TOOL, "n"), ack(TOOL, "n")]


def test_answers_of_one_type_keep_the_order_of_arrival_while_other_types_go_ahead(talk: Talk) -> None:
    slow, quick = talk.reads(SERVER, "slow", {"s/m/x": "1"}), talk.reads(SERVER, "quick", {"s/m/y": "1"})
    talk.judges(quick)
    assert talk.hears(TOOL, "n1", {A: "1"}) == [ack(TOOL, "n1")]
    talk.judges(slow)
    assert talk.says() == [ack(SERVER, "slow"), ack(SERVER, "quick")]


def test_a_busy_type_does_not_starve_the_answers_of_another(talk: Talk) -> None:
    for nonce in ("t1", "t2", "t3"):
        talk.judges(talk.reads(TOOL, nonce, {A: nonce}))
    talk.judges(talk.reads(TOOLKIT, "k1", {"s/m/kit": "1"}))
    assert [said.nonce for said in talk.says()] == ["t1", "k1", "t2", "t3"]


def test_a_subscription_change_is_spontaneous_and_carries_no_nonce(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.judges(talk.reads(TOOL, "n1", {A: "1"}))
    talk.session.set_scopes(["s/m", "t/m"])
    said = talk.says()
    assert [(request.kind, request.subscribe, request.nonce) for request in said[:4]] == [
        (kind, ("t/m/*",), "") for kind in CATALOG
    ]
    assert said[4:] == [ack(TOOL, "n1")]


def test_a_nack_names_every_bad_resource_and_why_and_the_stream_goes_on(talk: Talk) -> None:
    (said,) = talk.hears(TOOL, "n1", {A: "1", B: "1", C: "1"}, rejects={A: "no backend", C: "path is empty"})
    assert said.nonce == "n1"
    assert said.error == "2 of 3 resources rejected: s/m/x.a: no backend; s/m/x.c: path is empty"
    assert talk.hears(TOOL, "n2", {A: "2"}) == [ack(TOOL, "n2")]


def test_a_nack_of_thousands_is_cut_and_says_how_many_more(talk: Talk) -> None:
    names = {f"s/m/ü.{number:05}": "1" for number in range(10_000)}
    (said,) = talk.hears(TOOL, "n1", names, rejects=dict.fromkeys(names, "path is empty"))
    assert len(said.error.encode()) <= 16 * 1024
    shown = said.error.count("path is empty")
    assert said.error.endswith(f"; … and {10_000 - shown} more")


def test_one_endless_reason_does_not_push_the_others_out(talk: Talk) -> None:
    (said,) = talk.hears(TOOL, "n1", {A: "1", B: "1"}, rejects={A: "x" * 100_000, B: "path is empty"})
    assert said.error.endswith("…; s/m/x.b: path is empty")


def test_the_good_of_a_response_is_used_and_only_the_bad_version_is_not_claimed(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    talk.hears(TOOL, "n2", {A: "2", B: "2", C: "2"}, rejects={B: "bad", C: "bad"})
    assert talk.content[TOOL] == {A: b"2", B: b"1"}
    assert talk.claims(TOOL) == {A: "2", B: "1"}


def test_a_nacked_resource_triggers_nothing_spontaneous(talk: Talk) -> None:
    for turn in range(5):
        (said,) = talk.hears(TOOL, f"n{turn}", {A: "1"}, rejects={A: "bad"})
        assert said.error
        assert talk.says() == []
    assert talk.claims(TOOL) == {}
    (said,) = talk.hears(TOOL, "m1", {A: "1"}, rejects={A: "bad"})
    assert said.error
    assert talk.says() == []


def test_a_rejected_resource_that_is_taken_later_is_claimed(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "2"}, rejects={A: "namespace is owned"})
    talk.session.claim(TOOL, ResourceId("s/m", "x.a"), "2")
    talk.session.claim(TOOL, ResourceId("elsewhere/m", "x.a"), "2")
    assert talk.says() == []
    assert talk.claims(TOOL) == {A: "2"}


def test_a_handler_that_breaks_is_a_nack_and_claims_nothing_that_may_be_wrong(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    ticket = talk.reads(TOOL, "n2", {A: "2"})
    talk.session.settle(ticket, None)
    assert [said.error for said in talk.says()] == [INTERNAL_ERROR]
    assert talk.hears(TOOL, "n3", {B: "1"}) == [ack(TOOL, "n3")]
    assert talk.claims(TOOL) == {A: UNSETTLED, B: "1"}


# Versions


def test_an_empty_version_is_a_version(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: ""})
    assert talk.claims(TOOL) == {A: ""}


def test_an_equal_version_with_other_content_is_still_applied(talk: Talk) -> None:
    talk.hears(TOOL, "n1", [(A, "1", TOOL.value, b"old")])
    talk.hears(TOOL, "n2", [(A, "1", TOOL.value, b"new")])
    assert talk.content[TOOL] == {A: b"new"}


def test_versions_have_no_order(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "9"})
    talk.hears(TOOL, "n2", {A: "1"})
    assert talk.claims(TOOL) == {A: "1"}


def test_a_version_is_not_claimed_before_its_verdict_is_in(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    ticket = talk.reads(TOOL, "n2", {A: "2"})
    assert talk.claims(TOOL) == {A: UNSETTLED}
    talk.judges(ticket)
    assert talk.says() == []
    assert talk.claims(TOOL) == {A: "2"}


# Faults of a whole response


@pytest.mark.parametrize(
    ("updates", "removed", "fault"),
    [
        ([(A, "1", TOOL.value, b""), (A, "2", TOOL.value, b"")], [], "'s/m/x.a' is named twice"),
        ([(A, "1", TOOL.value, b"")], [A], "'s/m/x.a' is named twice, as removed"),
        ([], [A, A], "'s/m/x.a' is named twice, as removed"),
        ([(A, "1", SOURCE.value, b"")], [], f"'s/m/x.a' is of type '{SOURCE.value}'"),
        ([(A, "1", "", b"")], [], "'s/m/x.a' is of type ''"),
        ([("", "1", TOOL.value, b"")], [], "at position 2 has no name"),
        ([], [""], "a removed resource has no name"),
        ([(A, "1", None, b"")], [], "'s/m/x.a' has no content"),
        ([("t/m/x", "1", SOURCE.value, b"")], [], "'t/m/x' is of type"),
    ],
)
def test_a_fault_voids_the_whole_response_and_the_next_one_counts_again(
    talk: Talk, updates: list[tuple[str, str, str | None, bytes]], removed: list[str], fault: str
) -> None:
    talk.hears(TOOL, "n1", {C: "1"})
    ticket = talk.reads(TOOL, "n2", [(B, "1", TOOL.value, b""), *updates], removed)
    assert ticket.delivery is None
    (said,) = talk.says()
    assert said.nonce == "n2"
    assert said.error.startswith("response refused as a whole, nothing of it was applied: ")
    assert fault in said.error
    assert talk.hears(TOOL, "n3", {A: "1"}) == [ack(TOOL, "n3")]
    assert talk.claims(TOOL) == {A: "1", C: "1"}


def test_a_heartbeat_of_the_version_in_use_is_acked_and_changes_nothing(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    ticket = talk.reads(TOOL, "n2", [(A, "1", None, b"")])
    assert ticket.delivery is None
    assert talk.says() == [ack(TOOL, "n2")]
    assert talk.claims(TOOL) == {A: "1"}


def test_a_heartbeat_of_another_version_is_a_nack(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    (said,) = talk.hears(TOOL, "n2", [(A, "2", None, b"")])
    assert "version '2' is not the one in use" in said.error


def test_a_heartbeat_of_a_resource_that_is_being_applied_is_none_to_refuse(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", {A: "1"})
    beat = talk.reads(TOOL, "n2", [(A, "1", None, b"")])
    talk.judges(ticket)
    talk.judges(beat)
    assert talk.says() == [ack(TOOL, "n1"), ack(TOOL, "n2")]


def test_a_heartbeat_of_a_scope_that_is_not_ours_is_ignored(talk: Talk) -> None:
    assert talk.hears(TOOL, "n1", [("t/m/x.a", "7", None, b"")]) == [ack(TOOL, "n1")]


# What concerns us


@pytest.mark.parametrize("name", ["weather.get", "s/m", "s//x", "/m/x", "s/m/"])
def test_a_malformed_id_is_rejected_and_the_rest_is_delivered(talk: Talk, name: str) -> None:
    ticket = talk.reads(TOOL, "n1", {name: "1", A: "1"})
    assert ticket.delivery == Delivery(TOOL, (Delivered(ResourceId("s/m", "x.a"), "1", b"1"),), ())
    talk.judges(ticket)
    (said,) = talk.says()
    assert said.error.startswith(f"1 of 2 resources rejected: {name}: malformed resource ID")
    assert talk.claims(TOOL) == {A: "1"}


def test_a_response_of_malformed_ids_only_is_nacked_without_a_delivery(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", {"x": "1"}, removed=["y"])
    assert ticket.delivery is None
    (said,) = talk.says()
    assert "2 of 2" in said.error


def test_a_scope_that_is_not_ours_is_acked_not_delivered_and_not_in_the_map(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", {"t/m/x.a": "1", "s/mm/x.a": "1", "s/m/x.a": "1"}, removed=["t/m/x.b"])
    assert ticket.delivery == Delivery(TOOL, (Delivered(ResourceId("s/m", "x.a"), "1", b"1"),), ())
    talk.judges(ticket)
    assert talk.says() == [ack(TOOL, "n1")]
    assert talk.claims(TOOL) == {A: "1"}


def test_an_empty_response_is_acked_and_is_a_first_response(talk: Talk) -> None:
    for kind in CATALOG:
        assert not talk.session.complete
        assert talk.hears(kind, "n1") == [ack(kind, "n1")]
    assert talk.session.complete


def test_a_nack_is_a_first_response_too(talk: Talk) -> None:
    for kind in CATALOG:
        talk.hears(kind, "n1", {"malformed": "1"})
    assert talk.session.complete


def test_first_content_is_complete_when_it_is_applied_not_when_it_is_read(talk: Talk) -> None:
    for kind in (TOOL, SOURCE, TOOLKIT):
        talk.hears(kind, "n1")
    ticket = talk.reads(SERVER, "n1", {"s/m/x": "1"})
    assert not talk.session.complete
    talk.judges(ticket)
    assert talk.session.complete


@pytest.mark.parametrize("url", ["type.googleapis.com/envoy.config.cluster.v3.Cluster", "", "Tool"])
def test_a_type_that_was_not_asked_for_is_dropped_and_counted_without_an_answer(talk: Talk, url: str) -> None:
    assert talk.session.begin(url, "n1") is None
    assert talk.session.dropped == 1
    assert talk.says() == []
    assert talk.hears(TOOL, "n2", {A: "1"}) == [ack(TOOL, "n2")]


def test_a_type_of_ours_that_was_not_asked_for_on_this_stream_is_dropped_too(new_talk: type[Talk]) -> None:
    talk = new_talk()
    talk.session.open()
    assert talk.session.begin(TOOL.value, "n1") is None
    assert talk.session.types[TOOL].tally.dropped == 1


# Removal


def test_a_removal_of_a_name_never_seen_is_delivered_and_acked(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", removed=[A])
    assert ticket.delivery == Delivery(TOOL, (), (ResourceId("s/m", "x.a"),))
    talk.judges(ticket)
    assert talk.says() == [ack(TOOL, "n1")]


def test_a_removal_does_not_end_the_subscription_and_the_same_version_may_come_back(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    assert talk.hears(TOOL, "n2", removed=[A]) == [ack(TOOL, "n2")]
    assert talk.content[TOOL] == {}
    talk.hears(TOOL, "n3", {A: "1"})
    assert talk.content[TOOL] == {A: b"1"}
    assert talk.claims(TOOL) == {A: "1"}


def test_an_unasked_resend_of_an_equal_version_is_acked(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    assert talk.hears(TOOL, "n2", {A: "1"}) == [ack(TOOL, "n2")]


def test_a_removed_glob_means_that_nothing_of_the_scope_is_left(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m", wildcard=False)
    talk.opens()
    talk.hears(TOOL, "n1", {A: "1", B: "1", "t/m/x.a": "1"})
    assert talk.hears(TOOL, "n2", removed=["s/m/*"]) == [ack(TOOL, "n2")]
    assert talk.content[TOOL] == {"t/m/x.a": b"1"}
    assert talk.claims(TOOL) == {"t/m/x.a": "1"}


@pytest.mark.parametrize("name", ["s/m/*", "t/m/*", "*"])
def test_a_removed_glob_of_a_scope_without_content_is_a_first_response(talk: Talk, name: str) -> None:
    ticket = talk.reads(TOOL, "n1", removed=[name])
    assert ticket.delivery is None
    assert talk.says() == [ack(TOOL, "n1")]
    assert talk.session.types[TOOL].answered


def test_a_removed_glob_takes_along_what_is_still_being_applied(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    pending = talk.reads(TOOL, "n2", {B: "1"})
    emptied = talk.reads(TOOL, "n3", removed=["s/m/*"])
    assert emptied.delivery == Delivery(TOOL, (), (ResourceId("s/m", "x.a"), ResourceId("s/m", "x.b")))
    talk.judges(pending)
    talk.judges(emptied)
    assert talk.claims(TOOL) == {}


def test_a_glob_does_not_reach_into_a_scope_whose_name_only_begins_alike(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "s/mm")
    talk.opens()
    talk.hears(TOOL, "n1", {"s/mm/x.a": "1"})
    assert talk.reads(TOOL, "n2", removed=["s/m/*"]).delivery is None


# Errors of single resources


@pytest.mark.parametrize("code", [5, 7])
def test_a_resource_that_does_not_exist_or_is_forbidden_is_dropped(talk: Talk, code: int) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    assert talk.hears(TOOL, "n2", errors=[(A, code, "gone")]) == [ack(TOOL, "n2")]
    assert talk.content[TOOL] == {B: b"1"}
    assert talk.claims(TOOL) == {B: "1"}


@pytest.mark.parametrize("code", [2, 13, 14])
def test_a_resource_that_cannot_be_had_now_keeps_what_is_in_use(talk: Talk, code: int) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    ticket = talk.reads(TOOL, "n2", errors=[(A, code, "later")])
    assert ticket.delivery is None
    assert [(error.name, error.code, error.dropped) for error in ticket.errors] == [(A, code, False)]
    assert talk.says() == [ack(TOOL, "n2")]
    assert talk.claims(TOOL) == {A: "1"}


def test_an_error_on_a_glob_is_one_on_all_of_the_scope(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    talk.hears(TOOL, "n2", errors=[("s/m/*", 7, "forbidden")])
    assert talk.claims(TOOL) == {}


@pytest.mark.parametrize("name", [A, "t/m/x.a", "malformed", ""])
def test_an_error_on_what_we_do_not_have_is_no_removal(talk: Talk, name: str) -> None:
    assert talk.reads(TOOL, "n1", errors=[(name, 5, "gone")]).delivery is None
    assert talk.says() == [ack(TOOL, "n1")]


def test_a_resource_that_comes_beside_an_error_on_it_wins(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    talk.hears(TOOL, "n2", {A: "2"}, errors=[(A, 5, "gone")])
    assert talk.content[TOOL] == {A: b"2"}


# Scopes


def test_a_new_scope_in_wildcard_mode_needs_a_new_stream_that_declares_it(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", "t/m/x.a": "1"})
    assert talk.session.set_scopes(["s/m", "t/m"])
    first = talk.opens()[TOOL]
    assert first.subscribe == ("*",)
    assert first.scopes == ("s/m", "t/m")
    assert first.versions == {A: "1"}
    talk.hears(TOOL, "m1", {"t/m/x.a": "1"})
    assert talk.content[TOOL] == {A: b"1", "t/m/x.a": b"1"}


def test_scopes_that_go_or_stay_the_same_need_no_new_stream(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m")
    talk.opens()
    talk.hears(TOOL, "n1", {A: "1", "t/m/x.a": "1"})
    assert not talk.session.set_scopes(["t/m", "s/m"])
    assert not talk.session.set_scopes(["s/m"])
    assert talk.says() == []
    assert talk.hears(TOOL, "n2", {"t/m/x.a": "2"}) == [ack(TOOL, "n2")]
    assert talk.claims(TOOL) == {A: "1"}


def test_a_scope_that_is_declared_before_the_node_was_sent_needs_no_new_stream(new_talk: type[Talk]) -> None:
    talk = new_talk()
    talk.session.open()
    assert not talk.session.set_scopes(["s/m", "t/m"])
    assert talk.says()[0].scopes == ("s/m", "t/m")


def test_a_scope_that_went_and_came_back_is_sent_again_in_full(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    talk.session.set_scopes([])
    assert talk.session.set_scopes(["s/m"])
    assert talk.claims(TOOL) == {}


def test_in_scope_mode_scopes_come_and_go_on_the_live_stream(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    assert {request.subscribe for request in talk.opens().values()} == {("s/m/*",)}
    assert not talk.session.set_scopes(["t/m"])
    assert [(said.subscribe, said.unsubscribe, dict(said.versions)) for said in talk.says()] == [
        (("t/m/*",), ("s/m/*",), {})
    ] * 4


def test_in_scope_mode_nothing_is_asked_while_there_is_no_scope(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", wildcard=False)
    talk.session.set_scopes([])
    assert not talk.session.has_names
    assert talk.opens() == {}
    talk.session.set_scopes(["s/m"])
    assert [said.subscribe for said in talk.says()] == [("s/m/*",)] * 4


def test_giving_up_the_last_scope_is_an_unsubscription_never_a_wildcard(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.session.set_scopes([])
    assert [(said.subscribe, said.unsubscribe) for said in talk.says()] == [((), ("s/m/*",))] * 4
    assert talk.hears(TOOL, "late", {A: "1"}) == [ack(TOOL, "late")]


# Flow control and bookkeeping


def test_a_response_counts_as_unanswered_until_its_answer_is_taken(talk: Talk) -> None:
    first, second = talk.reads(TOOL, "n1", {A: "1"}), talk.reads(TOOL, "n2", {B: "1"})
    assert (talk.session.unanswered, talk.session.unsettled) == (2, 2)
    talk.judges(second)
    assert (talk.session.unanswered, talk.session.unsettled) == (2, 1)
    talk.judges(first)
    assert (talk.session.unanswered, talk.session.unsettled) == (2, 0)
    talk.says()
    assert talk.session.unanswered == 0


def test_handler_calls_of_an_older_stream_still_count(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", {A: "1"})
    talk.opens()
    assert talk.session.unanswered == 1
    talk.judges(ticket)
    assert talk.session.unanswered == 0


def test_a_settled_response_lets_its_payloads_go_while_its_answer_waits(talk: Talk) -> None:
    talk.reads(TOOL, "n1", {A: "1"})
    behind = talk.reads(TOOL, "n2", {B: "1"})
    talk.judges(behind)
    assert behind.delivery is None
    assert behind.checked is None


def test_a_verdict_counts_once(talk: Talk) -> None:
    ticket = talk.reads(TOOL, "n1", {A: "1"})
    talk.judges(ticket)
    talk.session.settle(ticket, None)
    assert talk.says() == [ack(TOOL, "n1")]
    assert talk.session.unsettled == 0


def test_counts_tell_acks_from_nacks_by_type(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    talk.hears(TOOL, "n2", {A: "2"}, rejects={A: "bad"})
    tally = talk.session.types[TOOL].tally
    assert (tally.responses, tally.acks, tally.nacks) == (2, 1, 1)
    assert tally.last_nack == "1 of 1 resources rejected: s/m/x.a: bad"
    assert talk.session.types[SOURCE].tally.responses == 0


# What an earlier life kept


def restored(talk: Talk, kind: Kind, versions: dict[str, str]) -> Ticket:
    """Kept content goes to the handler; its verdict is not in."""
    updates = tuple(
        Delivered(ResourceId("s/m", name.removeprefix("s/m/")), version, version.encode(), kept=True)
        for name, version in versions.items()
    )
    return talk.session.restore(Delivery(kind, updates, ()))


def test_kept_content_that_is_accepted_is_claimed_on_the_first_stream(new_talk: type[Talk]) -> None:
    talk = new_talk()
    talk.judges(restored(talk, TOOL, {A: "1", B: "2"}), {B: "no longer good"})
    assert talk.content[TOOL] == {A: b"1"}
    assert talk.claims(TOOL) == {A: "1"}
    assert not talk.session.complete


def test_kept_content_without_a_verdict_is_claimed_as_what_nobody_has(new_talk: type[Talk]) -> None:
    talk = new_talk()
    ticket = restored(talk, SOURCE, {"s/m/x": "1"})
    assert talk.claims(SOURCE) == {"s/m/x": UNSETTLED}
    assert talk.hears(SOURCE, "n1", removed=["s/m/x"]) == [ack(SOURCE, "n1")]
    talk.judges(ticket)
    assert talk.claims(SOURCE).get("s/m/x") != "1"


def test_kept_content_is_owed_no_answer_and_takes_no_place_of_a_response(new_talk: type[Talk]) -> None:
    talk = new_talk()
    tickets = [restored(talk, SERVER, {f"s/m/x{number}": "1"}) for number in range(40)]
    talk.opens()
    assert talk.session.unanswered == 0
    for ticket in tickets:
        talk.judges(ticket)
    assert talk.says() == []


def test_first_content_is_complete_only_when_kept_content_has_its_verdict_too(new_talk: type[Talk]) -> None:
    talk = new_talk()
    ticket = restored(talk, SOURCE, {"s/m/x": "1"})
    talk.opens()
    for kind in CATALOG:
        talk.hears(kind, "n")
    assert not talk.session.complete
    talk.judges(ticket)
    assert talk.session.complete


# Clusters and their endpoints

CLUSTER, ENDPOINTS = CLUSTERS


@pytest.fixture
def plumbed() -> Talk:
    """A talk that asks for clusters too."""
    talk = Talk(kinds=(*CLUSTERS, *CATALOG))
    talk.opens()
    return talk


@pytest.mark.parametrize("wildcard", [True, False])
def test_clusters_are_asked_for_first_and_with_a_star_and_endpoints_not_before_one_is_named(wildcard: bool) -> None:
    talk = Talk(wildcard=wildcard, kinds=(*CLUSTERS, *CATALOG))
    first = talk.opens()
    assert list(first) == [CLUSTER, *CATALOG]
    assert first[CLUSTER].subscribe == ("*",)
    assert first[CLUSTER].scopes == ("s/m",)
    talk.session.want(ENDPOINTS, ["weather", "museum/eu/1"])
    (asked,) = talk.says()
    assert (asked.kind, asked.subscribe, asked.unsubscribe) == (ENDPOINTS, ("weather", "museum/eu/1"), ())


def test_a_cluster_may_have_any_name_and_belongs_to_no_scope(plumbed: Talk) -> None:
    ticket = plumbed.reads(CLUSTER, "n1", {"weather": "1", "a/b/c": "2", "x": "3"})
    assert ticket.delivery is not None
    assert [(str(one.id), one.id.scope) for one in ticket.delivery.updates] == [
        ("weather", ""),
        ("a/b/c", ""),
        ("x", ""),
    ]
    plumbed.judges(ticket, {"x": "no"})
    assert plumbed.says()[0].error.startswith("1 of 3 resources rejected: x: no")
    plumbed.hears(CLUSTER, "n2", removed=["a/b/c", "*", "never/seen/*"])
    assert plumbed.claims(CLUSTER) == {"weather": "1"}


def test_a_change_of_scopes_does_not_concern_clusters(plumbed: Talk) -> None:
    plumbed.hears(CLUSTER, "n1", {"weather": "1"})
    plumbed.session.set_scopes(["t/m"])
    again = plumbed.opens()
    assert again[CLUSTER].versions == {"weather": "1"}
    assert again[CLUSTER].subscribe == ("*",)


def test_endpoints_that_nobody_names_any_more_are_left_and_not_claimed(plumbed: Talk) -> None:
    plumbed.session.want(ENDPOINTS, ["a", "b"])
    plumbed.says()
    plumbed.hears(ENDPOINTS, "n1", {"a": "1", "b": "1"})
    plumbed.session.want(ENDPOINTS, ["b", "c"])
    (left,) = plumbed.says()
    assert (left.subscribe, left.unsubscribe) == (("c",), ("a",))
    assert plumbed.claims(ENDPOINTS) == {"b": "1"}


def test_a_cluster_in_a_handlers_hands_is_claimed_as_what_nobody_has(plumbed: Talk) -> None:
    plumbed.reads(CLUSTER, "n1", {"weather/1": "1"})
    assert plumbed.claims(CLUSTER) == {"weather/1": UNSETTLED}


def test_first_content_is_complete_with_the_endpoints_that_its_clusters_name(plumbed: Talk) -> None:
    for kind in (*CATALOG, CLUSTER):
        plumbed.hears(kind, "n")
    assert plumbed.session.complete
    ticket = plumbed.reads(CLUSTER, "n2", {"weather": "1"})
    plumbed.session.want(ENDPOINTS, ["weather"])
    plumbed.judges(ticket)
    assert not plumbed.session.complete
    plumbed.says()
    plumbed.hears(ENDPOINTS, "n3", {"weather": "1"})
    assert plumbed.session.complete
