"""What the judge trusts: observations farther out than any healthy run, proofs of checks that have proved themselves, settings never alone."""

from __future__ import annotations

import numpy as np

from wheeltapper.judge.posterior import log_odds, scores, weighed_grade
from wheeltapper.judge.tables import Pointers, States, Tables, far_out, healthy_tail
from wheeltapper.program.checks import registry

NOTHING_LEARNED = "train-gain"


def tables(**more: object) -> Tables:
    states = {NOTHING_LEARNED: States([0, 0, 0, 1, 99, 200, 50, 20, 10, 5], [20, 10, 5, 5, 5, 5, 5, 5, 5, 5], {}, 0.5)}
    pointers = {"range": Pointers(70, 20, 1), "proof": Pointers(100, 10, 0), "untried": Pointers(10, 10, 5)}
    return Tables(states, {}, pointers, 400, 400, 385, 70, **more)  # type: ignore[arg-type]


def test_a_tail_counts_what_lies_farther_out_on_the_same_side() -> None:
    held = tables()
    assert healthy_tail(held, NOTHING_LEARNED, 0) < 0.003
    assert healthy_tail(held, NOTHING_LEARNED, 3) > healthy_tail(held, NOTHING_LEARNED, 0)
    own = healthy_tail(held, NOTHING_LEARNED, 3, own=True)
    assert own < healthy_tail(held, NOTHING_LEARNED, 3), "the run itself does not testify"


def test_far_out_is_none_few_or_as_none() -> None:
    held = tables()
    assert far_out(held, {NOTHING_LEARNED: 5}) == 0
    assert far_out(held, {NOTHING_LEARNED: 3}) == 1
    assert far_out(held, {NOTHING_LEARNED: 0}) == 2


def test_an_untried_check_must_speak_three_times_and_none_may_speak_on_healthy_runs() -> None:
    untried = next(check.id for check in registry().values() if check.untried)
    old = next(check.id for check in registry().values() if not check.untried)
    assert weighed_grade(tables(), "proof", untried) == "untried"
    assert weighed_grade(tables(checks={untried: (3, 0)}), "proof", untried) == "proof"
    assert weighed_grade(tables(checks={untried: (3, 0)}), "proof", untried, own=1) == "untried"
    assert weighed_grade(tables(), "proof", old) == "proof"
    assert weighed_grade(tables(checks={old: (6, 1)}), "proof", old) == "untried"
    assert weighed_grade(tables(checks={old: (40, 1)}), "proof", old) == "proof"
    assert weighed_grade(tables(), "proof", "arithmetic-on-settings") == "proof"


def test_a_setting_beyond_its_range_is_a_suspicion_and_no_verdict() -> None:
    held = tables()
    alone = log_odds(scores(held, {}, [("lr-too-high", "range", "beyond-range")]).illness)
    nothing = log_odds(scores(held, {}, []).illness)
    together = log_odds(scores(held, {NOTHING_LEARNED: 0}, [("lr-too-high", "range", "beyond-range")]).illness)
    assert nothing < alone < together
    assert alone <= np.log(4) + 0.5, "four to one, beside the base rate of everything else"
