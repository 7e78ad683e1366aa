"""Bug reports on other delta xDS clients, each as the conversation that went wrong there."""

from xds_talk import Talk

from arion_tds.model.delivery import CATALOG
from arion_tds.xds.held import UNSETTLED
from arion_tds.xds.subscription import Request

TOOL, SOURCE, SERVER, TOOLKIT = CATALOG
A, B = "s/m/x.a", "s/m/x.b"


def test_envoy_20699_the_latest_version_is_reported_not_the_first_seen(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    talk.hears(TOOL, "n2", {A: "2"})
    assert talk.claims(TOOL) == {A: "2"}


def test_envoy_15767_no_nonce_of_an_old_stream_is_ever_sent(talk: Talk) -> None:
    settled = talk.reads(TOOL, "n6", {A: "1"})
    unsettled = talk.reads(TOOL, "n7", {B: "1"})
    talk.judges(settled)
    first = talk.opens()
    assert {request.nonce for request in first.values()} == {""}
    talk.judges(unsettled)
    assert talk.says() == []
    assert talk.hears(TOOL, "m1", {A: "2"}) == [Request(TOOL, nonce="m1")]


def test_envoy_16063_a_wildcard_stays_one_after_a_reconnect(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    first = talk.opens()[TOOL]
    assert first.subscribe == ("*",)
    assert set(first.versions) == {A, B}


def test_istio_41494_what_was_removed_while_down_is_dropped(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    assert talk.claims(TOOL) == {A: "1", B: "1"}
    talk.hears(TOOL, "m1", removed=[B])
    assert talk.content[TOOL] == {A: b"1"}
    assert talk.claims(TOOL) == {A: "1"}


def test_istio_41494_also_when_it_was_still_being_applied_as_the_stream_broke(talk: Talk) -> None:
    pending = talk.reads(SERVER, "n1", {"s/m/x": "1"})
    assert talk.claims(SERVER) == {"s/m/x": UNSETTLED}
    removal = talk.reads(SERVER, "m1", removed=["s/m/x"])
    talk.judges(pending)
    talk.judges(removal)
    assert talk.content[SERVER] == {}
    assert talk.claims(SERVER) == {}


def test_envoy_18292_a_response_in_flight_after_unsubscribing_is_acked_and_not_tracked(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m", wildcard=False)
    talk.opens()
    talk.hears(TOOL, "n1", {A: "1"})
    talk.session.set_scopes(["t/m"])
    talk.says()
    late = talk.reads(TOOL, "n2", {A: "2"})
    assert late.delivery is None
    assert talk.says() == [Request(TOOL, nonce="n2")]
    first = talk.opens()[TOOL]
    assert first.subscribe == ("t/m/*",)
    assert first.versions == {}


def test_envoy_17980_a_removal_in_flight_after_unsubscribing_is_harmless(new_talk: type[Talk]) -> None:
    talk = new_talk("s/m", "t/m", wildcard=False)
    talk.opens()
    talk.session.set_scopes(["t/m"])
    assert talk.reads(TOOL, "n1", removed=[A, "s/m/*"]).delivery is None


def test_envoy_12646_the_two_sides_of_a_request_are_disjoint(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.session.set_scopes(["t/m"])
    talk.session.set_scopes(["s/m", "t/m"])
    for request in talk.says():
        assert not set(request.subscribe) & set(request.unsubscribe)


def test_gcp_431_a_scope_given_up_and_taken_again_is_asked_for_anew(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.hears(TOOL, "n1", {A: "1"})
    talk.session.set_scopes([])
    talk.session.set_scopes(["s/m"])
    said = [request for request in talk.says() if request.kind is TOOL]
    assert [(request.subscribe, request.unsubscribe) for request in said] == [((), ("s/m/*",)), (("s/m/*",), ())]
    talk.hears(TOOL, "n2", {A: "1"})
    assert talk.claims(TOOL) == {A: "1"}


def test_gcp_431_also_in_two_messages(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.session.set_scopes([])
    assert {request.unsubscribe for request in talk.says()} == {("s/m/*",)}
    talk.session.set_scopes(["s/m"])
    assert {request.subscribe for request in talk.says()} == {("s/m/*",)}


def test_gcp_488_a_missing_name_may_come_to_exist(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.hears(TOOL, "n1", removed=["s/m/*"])
    assert talk.session.types[TOOL].answered
    talk.hears(TOOL, "n2", {A: "1"})
    assert talk.content[TOOL] == {A: b"1"}


def test_gcp_962_n_responses_to_reject_are_n_nacks_and_not_one_request_more(talk: Talk) -> None:
    said = [request for n in range(50) for request in talk.hears(TOOL, f"n{n}", {A: "1"}, rejects={A: "bad"})]
    assert [request.nonce for request in said] == [f"n{n}" for n in range(50)]
    assert {request.error for request in said} == {"1 of 1 resources rejected: s/m/x.a: bad"}


def test_istio_34949_a_partial_push_is_not_the_whole_state(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1", B: "1"})
    talk.hears(TOOL, "n2", {A: "2"})
    assert talk.content[TOOL] == {A: b"2", B: b"1"}
    assert talk.claims(TOOL) == {A: "2", B: "1"}


def test_istio_49293_a_resource_without_name_and_version_is_refused_and_not_stored(talk: Talk) -> None:
    (said,) = talk.hears(TOOL, "n1", [("", "", TOOL.value, b"payload")])
    assert "has no name" in said.error
    assert talk.claims(TOOL) == {}


def test_envoy_34334_after_a_nack_and_a_reconnect_all_four_types_are_asked_for(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"}, rejects={A: "bad"})
    talk.reads(SOURCE, "n2", {"s/m/x": "1"})
    assert set(talk.opens()) == set(CATALOG)


def test_grpc_java_9809_a_type_without_scopes_still_answers_what_comes(new_talk: type[Talk]) -> None:
    talk = new_talk(wildcard=False)
    talk.opens()
    talk.session.set_scopes([])
    assert [(said.kind, said.unsubscribe) for said in talk.says()] == [(kind, ("s/m/*",)) for kind in CATALOG]
    assert talk.hears(TOOL, "n1", {A: "1"}) == [Request(TOOL, nonce="n1")]


def test_consul_12174_names_come_back_in_the_map_with_every_type_apart(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    talk.hears(SOURCE, "n1", {"s/m/x": "2"})
    first = talk.opens()
    assert {kind: dict(request.versions) for kind, request in first.items()} == {
        TOOL: {A: "1"},
        SOURCE: {"s/m/x": "2"},
        SERVER: {},
        TOOLKIT: {},
    }


def test_a_control_plane_rolled_back_while_a_handler_was_at_work_is_not_hidden_from(talk: Talk) -> None:
    """Content a@2 with a claim of a@1 would make a server that is back at a@1 send nothing."""
    talk.hears(TOOL, "n1", {A: "1"})
    pending = talk.reads(TOOL, "n2", {A: "2"})
    assert talk.claims(TOOL) != {A: "1"}
    back = talk.reads(TOOL, "m1", {A: "1"})
    talk.judges(pending)
    talk.judges(back)
    assert talk.content[TOOL] == {A: b"1"}
    assert talk.claims(TOOL) == {A: "1"}


def test_an_update_refused_after_one_still_in_hand_is_asked_for_again(talk: Talk) -> None:
    talk.hears(TOOL, "n1", {A: "1"})
    older, newer = talk.reads(TOOL, "n2", {A: "2"}), talk.reads(TOOL, "n3", {A: "3"})
    talk.judges(newer, {A: "bad"})
    talk.judges(older)
    assert talk.claims(TOOL) == {A: UNSETTLED}


def test_a_scope_that_came_back_is_not_credited_with_what_was_in_hand_before(talk: Talk) -> None:
    pending = talk.reads(TOOL, "n1", {A: "1"})
    talk.session.set_scopes([])
    assert talk.session.set_scopes(["s/m"])
    talk.opens()
    talk.judges(pending)
    assert talk.claims(TOOL) == {A: UNSETTLED}
