"""Terminal, Markdown and HTML: everything is there, nothing from the run can act, and it fits where it is read."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from report_sample import EVIL, sample_diagnosis, sample_forecast, sample_run
from wheeltapper.finding import Evidence, Finding, Unknown
from wheeltapper.judge.evidence import Seen
from wheeltapper.judge.model import RuledOut
from wheeltapper.report import html, markdown
from wheeltapper.report.first_screen import LINES, print_first_screens
from wheeltapper.report.pages import Page
from wheeltapper.report.terminal import console, print_diagnoses
from wheeltapper.report.terminal_page import print_page
from wheeltapper.report.terminal_show import print_runs
from wheeltapper.report.text import clean
from wheeltapper.report.view import nearer, view_of


def terminal(*diagnoses, width: int = 80, brief: bool = False) -> str:
    out = io.StringIO()
    (print_first_screens if brief else print_diagnoses)([view_of(d) for d in diagnoses], console(out, width=width))
    return out.getvalue()


def everything_said(text: str) -> list[str]:
    flat = " ".join(text.split())
    said = [
        "collapsed to chance at step 10,000",
        "ln 200 = 5.298",
        "Log the gradient norm every step",
        "model_best.pth",
        "at-chance",
        "p = 0.41",
        "81 %",
        "Something else",
        "+4.2",
        "−1.1",
        "optimizer.lr: 0.0004 → 0.0002",
        "Fork at step 9,000",
        "label smoothing changes its floor",
        "at most 3 overflows",
        "the warm-up lasts ten epochs",
        "tells LR from data",
        "no loss scale is logged",
        "train.log:206",
    ]
    return [words for words in said if words not in flat]


def test_terminal_says_everything_in_80_columns() -> None:
    text = terminal(sample_diagnosis())
    assert everything_said(text) == []
    assert max(len(line) for line in text.splitlines()) <= 80
    assert not any(line.endswith(" ") for line in text.splitlines())


@pytest.mark.parametrize(("epoch", "told"), [(10.0, True), (0.0, False), (400.0, False), (None, False)])
def test_an_epoch_is_told_where_it_adds_something(epoch: float | None, told: bool) -> None:
    diagnosis = sample_diagnosis()
    first = replace(diagnosis.findings[0], clock="step", onset=400.0, onset_epoch=epoch)
    (sign,) = view_of(replace(diagnosis, findings=(first,))).signs
    assert ("(epoch" in sign.when) is told


@pytest.mark.parametrize(
    ("verdict", "p_ill", "trouble", "shown"),
    [
        ("ill", 0.97, "evaluation", "✗ ILL  97 % · evaluation"),
        ("cannot-tell", 0.35, "learning", "? CANNOT TELL  35 %  "),
        ("sound", 0.02, None, "✓ SOUND  2 %  "),
        ("ill", 0.9991, "crash", "✗ ILL  > 99 % · crash"),
    ],
)
def test_the_verdict_is_shown_with_its_probability(verdict: str, p_ill: float, trouble: str | None, shown: str) -> None:
    diagnosis = sample_diagnosis(verdict=verdict, p_ill=p_ill, trouble=trouble)
    lines = terminal(diagnosis).splitlines()
    assert lines[1].startswith(shown)
    assert any(line.startswith(shown) for line in lines[-4:]), "a long report ends with the verdict"
    beside = shown.split("  ", 1)[1].strip()
    view = view_of(diagnosis, charts=True)
    words = f"{view.verdict_words} {beside}"
    assert words in markdown.render([view]).splitlines()[0].replace("&gt;", ">")
    assert words in html.page([view]).replace("&gt;", ">")


def test_what_cannot_be_told_names_its_leading_suspicion() -> None:
    open_run = view_of(sample_diagnosis(verdict="cannot-tell", p_ill=0.35), charts=True)
    said = "The learning rate is too high for this model (81 % if something is wrong)"
    for text in (
        terminal(sample_diagnosis(verdict="cannot-tell"), brief=True),
        markdown.render([open_run]),
        html.page([open_run]),
    ):
        flat = " ".join(text.split())
        assert "Leading suspicion" in flat
        assert said in flat
        assert "+4.2 bits: Collapse within one epoch" in flat
    assert view_of(sample_diagnosis()).suspicion is None, "an ill run says why"
    once = view_of(
        sample_diagnosis(
            verdict="cannot-tell",
            headline="Cannot tell: suspected (Collapse within one epoch of the LR peak (4e-4))",
            why=("Collapse within one epoch of the LR peak (4e-4).", "another thing"),
        )
    )
    assert once.why == ("another thing",), "what the headline says is not said again below it"
    assert once.suspicion is not None
    assert once.suspicion.why == ""
    nothing_for_it = replace(sample_diagnosis().causes[0], evidence=())
    assert view_of(sample_diagnosis(verdict="cannot-tell", causes=(nothing_for_it,))).suspicion is None


def test_what_speaks_for_a_cause_does_not_hide_what_speaks_against_it() -> None:
    many = tuple(Evidence(9.0 - i, f"reason {i}", "x") for i in range(7))
    lead = replace(sample_diagnosis().causes[0], evidence=(*many, Evidence(-0.5, "the one doubt", "y")))
    text = " ".join(terminal(sample_diagnosis(causes=(lead,))).split())
    assert "for it, in bits: +9.0 reason 0" in text
    assert "and 3 more against it, in bits: −0.5 the one doubt" in text


def test_numbers_are_told_by_their_band() -> None:
    seen = (
        Seen("skill", 0, False, "val/top1 hardly beats a guess", "learning", 0.01),
        Seen("settle", 1, True, "val/top1 is steady", "learning", 0.02),
        Seen("at-chance", 3, False, "a sign has no number", "learning"),
    )
    view = view_of(sample_diagnosis(seen=seen))
    assert [(row.name, row.value) for row in view.outside] == [("skill", "0.01")]
    assert view.inside == 1
    told = Finding(
        "skill", "val/top1 hardly beats a guess", "ill", "is-p", p=0.03, numbers={"value": 0.01, "bits": 3.2}
    )
    view = view_of(sample_diagnosis(seen=seen, findings=(told,)))
    assert view.outside == (), "what is a sign of this run is said once"
    assert view.signs[0].grade_words == "+3.2 bits for the leading cause"


def test_a_reason_that_rules_out_several_is_said_once() -> None:
    ruled_out = tuple(RuledOut(i, f"Cause {i}", "the loss is not finite") for i in "ab")
    (row,) = view_of(sample_diagnosis(ruled_out=ruled_out)).ruled_out
    assert row.value == "Cause a; Cause b"


def test_terminal_first_screen_fits_a_screen() -> None:
    many = replace(sample_diagnosis(), why=tuple(f"reason {i}: {'word ' * 25}" for i in range(9)))
    for diagnosis in (sample_diagnosis(), many, sample_diagnosis(verdict="cannot-tell")):
        text = terminal(diagnosis, brief=True)
        assert len(text.splitlines()) <= LINES
        assert view_of(diagnosis).verdict_words.upper() in text.splitlines()[0]
        flat = " ".join(text.split())
        assert diagnosis.headline in flat
        assert "1. " in flat.partition("What to do")[2], "the first thing to do is there"
        assert "--full" in text.splitlines()[-1]
    text = terminal(sample_diagnosis(), brief=True)
    assert text.index("Why") < text.index("What to do") < text.index("Where to look")


@pytest.mark.parametrize("width", [40, 60, 200])
def test_terminal_keeps_any_width(width: int) -> None:
    text = terminal(sample_diagnosis(), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    flat = " ".join(text.split())
    for curve in view_of(sample_diagnosis()).curves:
        assert curve.picture in flat, "no curve is cut"
        assert curve.numbers in flat


def test_a_pipe_gets_no_escape_codes() -> None:
    text = terminal(sample_diagnosis())
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[red]x[/red]" in " ".join(text.split()), "markup in a log is shown, not obeyed"


def test_many_runs_give_a_table_and_no_flood() -> None:
    text = terminal(*(sample_diagnosis(verdict=v) for v in ("sound", "ill", "cannot-tell", "sound")))
    lines = text.splitlines()
    assert lines[0] == "4 runs: 1 ill, 1 cannot tell, 2 sound"
    assert lines[1].startswith("✗ ILL")
    assert len(lines) < 20


def test_runs_of_one_name_are_told_apart_by_their_place() -> None:
    twins = [replace(sample_run("twin"), root=f"runs/{letter}/twin") for letter in "ab"]
    text = terminal(
        *(sample_diagnosis(run=run) for run in (*twins, sample_run("other"), sample_run("last"))), brief=True
    )
    assert "runs/a/twin" in text
    assert "runs/b/twin" in text
    assert text.count("other") == 1, "above three runs a line each, also with --brief"


def test_the_title_of_a_cause_keeps_its_margin() -> None:
    lead = replace(sample_diagnosis().causes[0], title="A title that is " + "much " * 15 + "longer than a line")
    lines = terminal(sample_diagnosis(causes=(lead,))).splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  81 %  A title"))
    assert lines[first + 1].startswith("        much") or lines[first + 1].startswith("        longer")


def test_a_trial_is_proposed_only_until_one_has_confirmed() -> None:
    lead = sample_diagnosis().causes[0]
    assert "Fork at step 9,000" in " ".join(terminal(sample_diagnosis()).split())
    tried = replace(lead, evidence=(Evidence(4.2, "a trial confirmed it", "trial"), *lead.evidence))
    text = " ".join(terminal(sample_diagnosis(causes=(tried,))).split())
    assert "a trial confirmed it" in text
    assert "Fork at step 9,000" not in text


def test_where_nothing_is_worth_keeping_no_file_is_named() -> None:
    best = sample_diagnosis().best
    assert best is not None
    empty = sample_diagnosis(todo=(), best=replace(best, nothing="the best val/top1 is worth nothing: chance"))
    for text in (terminal(empty), markdown.render([view_of(empty)]), html.page([view_of(empty, charts=True)])):
        assert "model_best.pth" not in text
        assert "worth nothing: chance" in " ".join(text.split())


def test_a_cause_is_likely_and_a_sign_beyond_noise() -> None:
    causes = (replace(sample_diagnosis().causes[0], grade="is-p"),)
    view = view_of(sample_diagnosis(causes=causes))
    assert view.causes[0].grade_words == "likely, by what was measured"
    assert {s.grade_words for s in view.signs if s.grade == "is-p"} == {"p = 0.41"}


def test_items_of_a_list_keep_their_margin() -> None:
    page = Page("x", "cause", "X.", (("References", "- One, with a long title that\n  goes on.\n- Two."),), "x.py")
    out = io.StringIO()
    print_page(page, console(out, width=30))
    assert out.getvalue().splitlines()[-5:-2] == ["  -  One, with a long title", "     that goes on.", "  -  Two."]


def test_show_prints_every_part() -> None:
    out = io.StringIO()
    print_runs([sample_run()], console(out, width=80))
    text = out.getvalue()
    for words in ("train/loss", "11 ×", "world_size", "model_best.pth", "resume: step 4,000", "crash at step 15,900"):
        assert words in text
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_markdown_says_everything_and_cannot_act() -> None:
    text = markdown.render([view_of(sample_diagnosis(headline="ping @someone about #12 <img src=x> `a`"))])
    assert "<script" not in text
    assert "<img" not in text
    assert "@someone" not in text
    assert [w for w in everything_said(text.replace("\\_", "_")) if "collapsed" not in w] == []


class Tags(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.unclosed: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in {"meta", "br", "link", "img"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unclosed.append(tag)


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def test_html_is_whole_self_contained_and_inert() -> None:
    text = html.page([view_of(sample_diagnosis(), charts=True)])
    tags = parsed(text)
    assert tags.unclosed == []
    assert tags.open == []
    assert not tags.tags & {"script", "link", "img", "iframe", "object", "embed", "form"}
    names = {name for name, _ in tags.attributes}
    assert not any(name.startswith("on") for name in names)
    assert not names & {"src", "xlink:href"}
    assert all(v.startswith("#") for n, v in tags.attributes if n == "href")
    assert not re.search(r"https?://|@import", text)
    assert "prefers-color-scheme: dark" in text
    assert text.count("<svg") == 5


def test_html_says_everything() -> None:
    text = html.page([view_of(sample_diagnosis(), charts=True)])
    words = re.sub(r"<[^>]+>", " ", text.replace("&#34;", '"'))
    assert everything_said(words) == []


def test_html_of_several_runs_has_an_index() -> None:
    text = html.page([view_of(sample_diagnosis(), charts=True), view_of(sample_diagnosis(verdict="sound"))])
    assert 'href="#run-2"' in text
    assert 'id="run-2"' in text
    idents = re.findall(r'id="(nan-[^"]+)"', text)
    assert len(idents) == len(set(idents))


def test_clean_survives_what_logs_hold() -> None:
    assert clean(EVIL) == "<script>alert(1)</script>[red]x[/red] `|` end"
    assert clean("\x1b]0;title\x07hi\x1b]8;;http://x\x1b\\link") == "hilink"
    assert clean("a" * 1000, 10) == "aaaaaaaaa…"
    assert clean("\ud800x") == "x"
    assert clean("日本\u200b語") == "日本語"


def test_a_forecast_is_told_and_drawn() -> None:
    view = view_of(sample_diagnosis(prognosis=sample_forecast()), charts=True)
    assert view.prognosis == sample_forecast().lines
    assert "0.519, 90 % between 0.319 and 0.819" in view.prognosis[0]
    page = html.page([view])
    assert page.count('<polygon class="band"') == 1
    assert "expected, 90 % band" in page
    refused = view_of(sample_diagnosis(prognosis=Unknown("the learning rate still warms up")))
    assert refused.prognosis == ("No forecast: the learning rate still warms up",)


def test_only_a_whole_path_is_shortened() -> None:
    """`run/` ends `trial_run/` too."""
    told = nearer(("run/train.log:3", "/x/trial_run/ledger.jsonl", "(run/a.yaml)", "/x/run/b"), "run/")
    assert told == ("train.log:3", "/x/trial_run/ledger.jsonl", "(a.yaml)", "/x/run/b")
    assert nearer("see /x/run/b", "/x/run/") == "see b"
