from arion_tds.xds.subscription import Subscription


def test_the_first_request_asks_for_everything_wanted() -> None:
    names = Subscription(["a/b/*", "c/d/*"])
    assert names.pull() == (("a/b/*", "c/d/*"), ())
    assert names.pull() is None


def test_an_empty_subscription_asks_nothing_since_no_names_would_mean_all() -> None:
    names = Subscription([])
    assert names.pull() is None
    assert not names.asked


def test_what_is_asked_and_withdrawn_before_anything_was_sent_is_never_sent() -> None:
    names = Subscription([])
    names.want(["a/b/*"])
    names.want([])
    assert names.pull() is None


def test_the_next_request_says_the_difference_and_keeps_the_two_sides_apart() -> None:
    names = Subscription(["a/b/*", "c/d/*"])
    names.pull()
    names.want(["c/d/*", "e/f/*"])
    assert names.pull() == (("e/f/*",), ("a/b/*",))


def test_a_name_given_up_and_wanted_again_goes_out_as_two_requests() -> None:
    names = Subscription(["a/b/*"])
    names.pull()
    names.want([])
    names.want(["a/b/*"])
    assert names.pull() == ((), ("a/b/*",))
    assert names.pull() == (("a/b/*",), ())
    assert names.pull() is None


def test_a_new_stream_is_told_all_names_including_those_changed_while_down() -> None:
    names = Subscription(["a/b/*", "c/d/*"])
    names.pull()
    names.want(["c/d/*", "e/f/*"])
    names.open()
    assert names.pull() == (("c/d/*", "e/f/*"), ())
    assert names.pull() is None


def test_wanting_the_same_again_says_nothing() -> None:
    names = Subscription(["*"])
    names.pull()
    names.want(["*"])
    assert names.pull() is None
