"""The claims of the five cases, put to trial on the lab's systems; writes docs/claims.md.

    python scripts/trial_claims.py [-o FOLDER] [--page docs/claims.md]

Each claim is a change that its write-up says would mend the run. It is tried beside the change that takes away
the true cause (where the run has one), with the same seeds, and judged by trial.compare.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_pairs import Bench, Case, ill, run_case

REPLICATE = """\
         self.train_set = self.load_split(args.max_files_per_domain, args.seed)
+        tiles, masks, domains = self.train_set
+        single = masks.sum((1, 2, 3)) == 1
+        tiles[single] = tiles[single][:, :1].expand(-1, 4, -1, -1).clone()
+        masks[single] = 1.0
"""
# The same in validation: the picture to be cleaned is then another, easier one.
EVERYWHERE = (
    REPLICATE
    + """\
@@
         self.val_set = self.load_split(10, args.seed + 1)
+        tiles, masks, domains = self.val_set
+        single = masks.sum((1, 2, 3)) == 1
+        tiles[single] = tiles[single][:, :1].expand(-1, 4, -1, -1).clone()
+        masks[single] = 1.0
"""
)
FRESH_BN = """\
         model = self.ema_model if self.ema_model is not None else self.net
+        if self.ema_model is not None:
+            pictures = normalise(resize(self.train_set.images, self.loader_size))
+            torch.optim.swa_utils.update_bn([pictures], model)
"""
STEPS = {"scheduler": "MultiStepLR", "milestones": [80, 100, 120, 140]}  # cools to 1/16, so the ends compare


@dataclass(frozen=True)
class Claim:
    title: str
    source: str  # which case says so
    case: Case
    blamed: tuple[str, ...]  # the arms that the claim is about
    words: str  # what stands before the numbers
    moral: str


def claims() -> list[Claim]:
    cosine = ill("sr-nano", None, scheduler="CosineAnnealingLR")
    fast = ill("sedd-protein", None, curriculum=True, difficulty_ramp="exponential", preschool_time=20)
    return [
        Claim(
            "The fp16 loss scale is the cause", "001, 002",
            Case("fp16", ill("sr-nano", "val-64px"), {
                "validation on whole pictures": {"fault": "none"}, "bf16 instead of fp16": {"amp_bf16": True},
                "no mixed precision": {"use_amp": False},
            }),
            ("bf16 instead of fp16", "no mixed precision"),
            "The lab's super-resolution run with the same fault as the original: validation shrinks its pictures first. "
            "PSNR is low, and the loss scale stays at 65,536, where it begins: nothing overflows.",
            "Precision does nothing to the symptom; mending the validation code removes it.",
        ),
        Claim(
            "... and where fp16 really is the cause", "a check of the trial itself",
            Case("fp16-overflow", ill("sr-nano", "fp16-overflow"), {
                "no mixed precision": {"use_amp": False}, "a third of the learning rate": {"lr": 0.003},
            }, kind="symptom"),
            ("no mixed precision",),
            "Attention logits that pass 65,504, the end of half precision: the run breaks off with NaN.",
            "The same kind of arm that is refuted above is confirmed here: the trial can tell the two apart. A lower rate helps as well, "
            "as the logits then grow more slowly: a trial says that a change removes the symptom, not that it is the only one that does.",
        ),
        Claim(
            "Cosine and EMA are incompatible", "002",
            Case("cosine+ema", cosine, {"cosine without EMA": {"ema_decay": 0.0}, "steps with EMA": STEPS}, delta=0.18),
            ("cosine without EMA", "steps with EMA"),
            "A healthy run with both. If the two did not go together, taking one away would gain something; what "
            "matters is 0.18 dB, three times the spread over seeds.",
            "Neither gains what would matter: cosine and an average go together.",
        ),
        Claim(
            "Replicate the channel instead of padding with zeros", "000",
            Case("replicate", ill("edm-prior", None), {
                "replicated in training": {"patch": REPLICATE}, "replicated in training and validation": {"patch": EVERYWHERE},
            }, delta=0.02),
            ("replicated in training",),
            "The lab's denoising prior, pictures of one channel in four. Four copies with independent noise are a picture "
            "with half the noise: the network learns another task than it is used for.",
            "Judged on the pictures as they come, training on copies makes it worse. Copying in validation as well hides that: the "
            "number is about as good again, for another task (four noisy copies of each picture, which nobody has).",
        ),
        Claim(
            "The curriculum is too fast", "003",
            Case("curriculum", fast, {
                "six times slower, linear": {"preschool_time": 120, "difficulty_ramp": "linear"}, "no curriculum": {"curriculum": False},
            }, delta=0.09),
            ("six times slower, linear",),
            "The lab's discrete diffusion with an exponential ramp over a ninth of the run. Judged by the loss on held-out "
            "sequences under full noise, the same for all arms; the training loss cannot judge, as its noise grows with the ramp.",
            "A slower ramp does not end lower where all are asked the same.",
        ),
        Claim(
            "BatchNorm in the EMA is broken", "004",
            Case("bn-in-ema", ill("resnet-ddp", "ema-horizon"), {
                "a horizon that fits the run": {"ema_decay": 0.95, "ema_every": 1}, "BatchNorm statistics recomputed": {"patch": FRESH_BN},
            }),
            ("BatchNorm statistics recomputed",),
            "The lab's classifier, validated with averaged weights that remember the first ones for longer than the run lasts.",
            "Fresh statistics for stale weights do not help; a shorter horizon does.",
        ),
        Claim(
            "... and where BatchNorm really is the cause", "a check of the trial itself",
            Case("bn-stale", ill("resnet-ddp", "ema-without-buffers"), {
                "buffers averaged too": {"fault": "none"}, "a shorter horizon": {"ema_decay": 0.8},
            }),
            ("buffers averaged too",),
            "Here the average leaves the BatchNorm statistics as they were at the start, with a horizon that fits.",
            "Averaging the buffers gains far more than a shorter horizon, which is refuted; what is asked for a yes is more than half of "
            "what the ill run of seed 0 lacked, and that run lacked more than most.",
        ),
    ]  # fmt: skip


def page(found: list[tuple[Claim, dict[str, Any]]], runs: int) -> str:
    out = [
        "# The claims of the cases, put to trial",
        "",
        "Five write-ups of real failed runs name causes with confidence (the cases in `examples/cases`). Here each claim is put",
        "to trial on the lab's system that stands for the original: the run again, unchanged and with one thing changed, the same",
        "seeds for both, at least four pairs for a yes. alpha = beta = 0.05 over all looks; alpha is shared among the arms of a trial.",
        "",
        "This page is written by `scripts/trial_claims.py`. The runs are the lab's at size test, cut to 25 to 40 % of their length;",
        "a result holds for these small systems and says what the claim is worth as a general rule, not what a large run does.",
        "",
        "| claim | case | tried | verdict |",
        "| --- | --- | --- | --- |",
    ]
    for claim, result in found:
        for arm in claim.blamed:
            answer = result["arms"][arm]["answer"].replace("-", " ")
            out.append(f"| {claim.title} | {claim.source} | {arm} | **{answer}** |")
    for claim, result in found:
        out += ["", f"## {claim.title}", "", claim.words, ""]
        out += ["| arm | verdict | pairs | what came out |", "| --- | --- | --- | --- |"]
        for arm, one in result["arms"].items():
            out.append(f"| {arm} | {one['answer'].replace('-', ' ')} | {one['pairs']} | {one['why']} |")
        values = ", ".join("not finite" if v is None or v != v else f"{v:.4g}" for v in result["control"])
        out += ["", f"Control: {values}. {claim.moral}"]
        train = result.get("train") or []
        if claim.case.name == "curriculum" and len(train) == 2 and None not in train:
            out[-1] += f" (Training loss of the control: {train[0]:.3g} at the start, {train[1]:.3g} at the end.)"
    out += ["", f"{runs} trainings in all.", ""]
    return "\n".join(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("out/trial_claims"))
    parser.add_argument("--page", type=Path, default=Path("docs/claims.md"))
    parser.add_argument("--only", default="", help="claims whose short name holds one of these, by commas")
    args = parser.parse_args()
    bench = Bench(args.out)
    found: list[tuple[Claim, dict[str, Any]]] = []
    for claim in claims():
        if not any(part in claim.case.name for part in args.only.split(",")):
            continue
        result = run_case(claim.case, bench, most_pairs=12)
        found.append((claim, result))
        for arm, one in result["arms"].items():
            print(f"{claim.case.name:14} {arm:40} {one['answer']:12} {one['pairs']}  {one['why']}", flush=True)
        (args.out / "claims.json").write_text(json.dumps([r for _, r in found], indent=1), encoding="utf-8")
        runs = sum(len(r["control"]) + sum(len(a["values"]) for a in r["arms"].values()) for _, r in found)
        args.page.write_text(page(found, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
