import pytest

from arion_tds.model.delivery import ResourceId
from arion_tds.xds.held import UNSETTLED, Held

A = "s/m/a"
ID = ResourceId("s/m", "a")


@pytest.fixture
def held() -> Held:
    made = Held(["s/m"])
    made.claim(ID, "1")
    return made


def test_a_version_counts_when_its_verdict_is_in(held: Held) -> None:
    held.touch([A], 1)
    assert held.claims() == {A: UNSETTLED}
    held.settle(ID, "2", 1, 0)
    assert held.claims() == {A: "2"}


def test_a_rejected_version_leaves_the_one_in_use(held: Held) -> None:
    held.touch([A, "s/m/b"], 1)
    held.keep(A)
    held.keep("s/m/b")
    assert held.claims() == {A: "1"}


def test_a_removal_takes_the_version_away(held: Held) -> None:
    held.touch([A], 1)
    held.settle(ID, None, 1, 0)
    assert held.claims() == {}
    assert len(held) == 0


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_of_two_responses_in_hand_the_newer_decides_in_whatever_order_they_end(
    held: Held, order: tuple[int, int]
) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    for seq in order:
        held.settle(ID, str(seq + 1), seq, 0)
    assert held.claims() == {A: "3"}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_when_the_newer_of_two_is_rejected_nothing_is_claimed_that_may_be_wrong(
    held: Held, order: tuple[int, int]
) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    for seq in order:
        if seq == 1:
            held.settle(ID, "2", 1, 0)
        else:
            held.keep(A)
    assert held.claims() == {A: UNSETTLED}


def test_a_removal_that_overtakes_an_update_is_what_counts(held: Held) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    held.settle(ID, None, 2, 0)
    held.settle(ID, "2", 1, 0)
    assert held.claims() == {}


def test_an_older_rejection_does_not_unsettle_what_a_newer_response_decided(held: Held) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    held.settle(ID, "3", 2, 0)
    held.keep(A)
    assert held.claims() == {A: "3"}


def test_two_in_hand_that_are_both_rejected_leave_the_one_in_use(held: Held) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    held.keep(A)
    held.keep(A)
    assert held.claims() == {A: "1"}


def test_what_one_decided_is_open_again_when_another_comes(held: Held) -> None:
    held.touch([A], 1)
    held.touch([A], 2)
    held.settle(ID, "3", 2, 0)
    held.touch([A], 3)
    held.touch([A], 4)
    held.settle(ID, "4", 3, 0)
    held.keep(A)
    held.keep(A)
    assert held.claims() == {A: UNSETTLED}


def test_three_in_hand_leave_nothing_behind(held: Held) -> None:
    for seq in (1, 2, 3):
        held.touch([A], seq)
    held.settle(ID, "4", 3, 0)
    held.settle(ID, "2", 1, 0)
    held.keep(A)
    assert held.claims() == {A: "4"}
    assert not held._flying
    assert not held._races


def test_a_scope_that_goes_takes_its_versions_with_it(held: Held) -> None:
    held.drop_scope("s/m")
    assert held.claims() == {}
    held.claim(ID, "1")
    assert held.claims() == {}


def test_a_verdict_on_content_of_a_scope_that_went_and_came_back_is_not_trusted(held: Held) -> None:
    held.touch([A], 1)
    held.drop_scope("s/m")
    held.add_scope("s/m", 2)
    held.settle(ID, "2", 1, generation=0)
    assert held.claims() == {A: UNSETTLED}
