"""Score `wheeltapper review` against documents whose truth is known.

python research/review/score.py cases  DOCUMENTS EXAMPLES        the five case documents (shared/cases, examples/cases)
python research/review/score.py ward   WARD WORLDS [--part seen] the short diagnoses of diagnoses.txt (folders of runs)
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from wheeltapper import api
from wheeltapper.review.document import repaired
from wheeltapper.review.model import Answer, Review

HERE = Path(__file__).resolve().parent
RECORDS = {
    "000": "000-edm-prior",
    "001": "001-sr-degradation",
    "002": "001-sr-degradation",
    "003": "003-sedd-curriculum",
    "004": "004-imagenet-onecycle",
}
DECIDED = ("supported", "contradicted")


@dataclass
class Text:
    """One short diagnosis: its lines with their truth."""

    id: str
    run: str
    part: str
    wrong: str
    lines: list[tuple[str, str]] = field(default_factory=list)


def texts() -> list[Text]:
    out: list[Text] = []
    for line in (HERE / "diagnoses.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("==="):
            out.append(Text(*(part.strip() for part in line[3:].split("|"))))
        elif line[1:2] == "|" and out:
            out[-1].lines.append((line[0], line[2:]))
    return out


def on_line(review: Review, line: int) -> list[Answer]:
    return [answer for answer in review.answers if answer.claim.line == line]


def score_texts(folders: dict[str, Path], part: str, show: int) -> None:
    wrong = caught = true = denied = answered = 0
    kinds: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for text in texts():
        if text.part != part:
            continue
        place, _, name = text.run.partition("/")
        review = api.review("\n".join(line for _, line in text.lines), folders[place] / name)
        block_wrong: list[bool] = []
        for number, (truth, line) in enumerate(text.lines, 1):
            answers = on_line(review, number)
            against = [a for a in answers if a.verdict == "contradicted"]
            if truth == "W":
                block_wrong.append(bool(against))
            elif truth == "T":
                true += 1
                denied += bool(against)
                answered += any(a.verdict in DECIDED for a in answers)
            if show and ((truth == "T" and against) or truth == "W"):
                print(f"{text.id} {truth} {'+' if (truth == 'W') == bool(against) else '!'} {line}")
                for a in answers:
                    print(f"      {type(a.claim).__name__} {a.verdict}: {a.why[:150]}")
        if block_wrong:
            wrong += 1
            caught += any(block_wrong)
            kinds[text.wrong] += 1
            missed[text.wrong] += not any(block_wrong)
    print(
        f"{part}: wrong claims contradicted {caught} of {wrong} ({caught / max(1, wrong):.0%}); true ones contradicted {denied} of {true} ({denied / max(1, true):.1%}); true ones answered {answered} ({answered / max(1, true):.0%})"
    )
    print("missed by kind:", {kind: f"{missed[kind]} of {n}" for kind, n in sorted(kinds.items())})


def score_cases(documents: Path, examples: Path, show: int) -> None:
    rows = [
        [cell.strip() for cell in line.split("|")]
        for line in (HERE / "cases.txt").read_text(encoding="utf-8").splitlines()
        if line[:1].isdigit()
    ]
    reviews: dict[str, tuple[list[str], Review]] = {}
    for case in RECORDS:
        source = next(documents.glob(f"{case}_*")).read_text(encoding="utf-8")
        reviews[case] = (repaired(source).splitlines(), api.review(source, examples / RECORDS[case]))
    decidable = answered = right = extra = wrong_extra = 0
    for case, number, truth, sign, words in rows:
        lines, review = reviews[case]
        at = [k for k, line in enumerate(lines, 1) if " ".join(words.split()) in " ".join(line.split())]
        answers = [a for k in at for a in on_line(review, k) if a.verdict in DECIDED]
        verdict = (
            None
            if not answers
            else "contradicted"
            if any(a.verdict == "contradicted" for a in answers)
            else "supported"
        )
        want = {"y": "supported", "n": "contradicted"}.get(truth)
        if sign == "+":
            decidable += 1
            answered += verdict is not None
            right += verdict == want
        elif verdict is not None:
            extra += 1
            wrong_extra += (want is None and verdict == "supported") or (want is not None and verdict != want)
        if show == 2 or (show and (not at or (verdict != want and (sign == "+" or verdict)))):
            print(f"{case} #{number} truth {truth} {sign} -> {verdict}  {words} lines {at}")
            for k in at:
                for a in on_line(review, k):
                    print(f"      {type(a.claim).__name__} {a.verdict}: {a.why[:150]}")
    print(
        f"cases: {answered} of {decidable} decidable claims answered ({answered / decidable:.0%}), {right} of {answered} right ({right / max(1, answered):.0%}); {extra} others answered, {wrong_extra} of them wrongly"
    )
    for case, (_, review) in reviews.items():
        print(case, dict(Counter(a.verdict for a in review.answers)), "unread", len(review.unread))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cases", "ward"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--part", default="seen", choices=("seen", "sealed", "fresh", "last", "final"))
    parser.add_argument("--show", action="count", default=0, help="print what went wrong; twice: everything")
    args = parser.parse_args()
    if args.what == "ward":
        score_texts(dict(zip(("wardA", "worlds"), args.paths, strict=False)), args.part, args.show)
    else:
        score_cases(args.paths[0], args.paths[1], args.show)


if __name__ == "__main__":
    main()
