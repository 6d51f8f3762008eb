"""What the judge trusts: observations farther out than any healthy run, proofs of checks that have proved themselves, settings never alone."""

from __future__ import annotations

import numpy as np

from wheeltapper.judge.posterior import PROOF, finding_ratio, log_odds, scores
from wheeltapper.judge.tables import Pointers, States, Tables, far_out, healthy_tail

NOTHING_LEARNED = "train-gain"


def tables(**more: object) -> Tables:
    states = {NOTHING_LEARNED: States([0, 0, 0, 1, 99, 200, 50, 20, 10, 5], [20, 10, 5, 5, 5, 5, 5, 5, 5, 5], {}, 0.5)}
    pointers = {"range": Pointers(70, 20, 1), "proof": Pointers(100, 10, 0)}
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


def test_a_check_counts_by_its_own_record() -> None:
    checks = {f"check-{i}": (2, 0) for i in range(40)} | {"good": (20, 0), "bad": (2, 2)}
    held = tables(checks=checks)
    good, bad, new = (finding_ratio(held, "proof", id_) for id_ in ("good", "bad", "new"))
    assert good > PROOF > bad
    assert bad < new < good, "one without a record is held for the usual one"
    assert finding_ratio(held, "proof", "good", own=19) < good, "the run itself does not testify"
    assert finding_ratio(held, "range", "good") == finding_ratio(held, "range", "bad"), "settings count by their grade"


def test_a_setting_beyond_its_range_is_a_suspicion_and_no_verdict() -> None:
    held = tables()
    alone = log_odds(scores(held, {}, [("lr-too-high", "range", "beyond-range")]).illness)
    nothing = log_odds(scores(held, {}, []).illness)
    together = log_odds(scores(held, {NOTHING_LEARNED: 0}, [("lr-too-high", "range", "beyond-range")]).illness)
    assert nothing < alone < together
    assert alone <= np.log(4) + 0.5, "four to one, beside the base rate of everything else"
