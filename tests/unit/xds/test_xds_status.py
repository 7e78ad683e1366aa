from arion_tds.xds.status import Said


def test_a_problem_that_repeats_is_said_once_in_a_while() -> None:
    said = Said()
    assert said.news("refused", 0.0)
    assert not said.news("refused", 299.0)
    assert said.news("another", 299.0)
    assert said.news("refused", 300.0)


def test_what_was_said_is_bounded() -> None:
    said = Said()
    assert all(said.news(number, 0.0) for number in range(1000))
    assert len(said._at) == Said.MOST
