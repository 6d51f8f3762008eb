"""A hand-made diagnosis with every field filled, and strings that try to break each renderer."""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Clear, Edit, Evidence, Finding, Place, Remedy, Unknown
from wheeltapper.judge.model import (
    SOMETHING_ELSE,
    BestCheckpoint,
    Diagnosis,
    Expected,
    MetricVerdict,
    Missing,
    Progress,
    RankedCause,
    RuledOut,
)
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.reading.record import Checkpoint
from wheeltapper.run.model import Event, Fact, Note, Run, Segment, Series

EVIL = "<script>alert(1)</script>[red]x[/red]\x1b[31m\x07 `|` \u202eend"


def series(name, values, at=None, *, quantity=None, split=None, better="down", clock="step", part=None, **more):
    values = np.asarray(values, dtype=np.float64)
    at = np.arange(len(values), dtype=np.float64) if at is None else np.asarray(at, dtype=np.float64)
    return Series(
        name=name,
        raw=more.pop("raw", name),
        quantity=quantity,
        split=split,
        part=part,
        unit=more.pop("unit", None),
        better=better,
        clock=clock,
        at=at,
        values=values,
        files=("train.log",),
        file_of=np.zeros(len(values), dtype=np.int64),
        lines=np.arange(1, len(values) + 1, dtype=np.int64),
        **more,
    )


def sample_run(name="cub_4e-4") -> Run:
    rng = np.random.default_rng(7)
    steps = np.arange(0, 16000, 50.0)
    loss = 5.3 * np.exp(-steps / 9000) + 0.05 * rng.standard_normal(len(steps))
    loss[steps >= 10000] = 5.32 + 0.02 * rng.standard_normal(int((steps >= 10000).sum()))
    loss[205:215] = np.nan
    loss[215] = np.inf
    evals = np.arange(1000, 16001, 1000.0)
    top1 = np.where(evals < 10000, 30.2 * evals / 9000, 0.52)
    rate = np.minimum(steps / 10000, 1) * 4e-4
    epochs = {"epoch": steps / 1000}
    rows = [
        series("train/loss", loss, steps, quantity="loss", split="train", clocks=epochs),
        series("val/loss", np.where(evals < 10000, 3.1, 5.3), evals, quantity="loss", split="val"),
        series("val/top1", top1, evals, quantity="accuracy", split="val", better="up", unit="%"),
        series("lr", rate, steps, quantity="lr", better="neither"),
        series("grad_norm", np.abs(rng.standard_normal(len(steps))) + 1, steps, quantity="grad_norm", better="unknown"),
        series(EVIL, [1.0, float("-inf"), 3.0], quantity=None, better="unknown"),
    ]
    dead = series("train/loss", [4.1, 4.2, 4.3], [4000, 4050, 4100], quantity="loss", split="train")
    return Run(
        name=name,
        root="runs/cub",
        formats=("timm summary.csv", "args.yaml"),
        series={s.name: s for s in rows},
        dead={"train/loss": (dead,)},
        facts={"world_size": Fact("world_size", 2, "train.log:3"), "x": Fact("x", float("nan"), EVIL, derived=True)},
        checkpoints=(Checkpoint("model_best.pth", step=9000, size=123456, kinds=("raw", "ema")),),
        events=(
            Event("crash", f"Traceback\nRuntimeError: {EVIL}", "train.log", 99, at=15900, clock="step"),
            Event("stage", "resolution 448", "train.log", 40, at=12000, clock="step"),
        ),
        segments=(
            Segment(0, "step", 0, 4100, "first", "train.log", 1, "start"),
            Segment(1, "step", 4000, 16000, "resume", "train.log", 85, "the step fell from 4100 to 4000"),
        ),
        notes=(Note(f"3 lines not understood {EVIL}", "train.log", 12, "lost"),),
        files=("train.log",),
    )


def sample_forecast() -> Forecast:
    at = tuple(np.linspace(16000, 20000, 20).tolist())
    middle = tuple(0.5 + 0.001 * i for i in range(20))
    low, high = tuple(m - 0.2 for m in middle), tuple(m + 0.3 for m in middle)
    return Forecast("val/top1", "step", at, low, middle, high, "power", 0.2, 0.1, ("no setting is changed",), 5400.0)


def sample_diagnosis(**changes) -> Diagnosis:
    run = changes.pop("run", None) or sample_run()
    fields = {
        "verdict": "ill",
        "p_ill": 0.97,
        "trouble": "learning",
        "headline": "The run collapsed to chance at step 10,000, when warm-up reached its peak, and stayed there.",
        "why": (
            "val/top1 fell from 30.2 % to 0.52 %, which is chance for 200 classes (0.5 %).",
            "train/loss rose from 1.8 to 5.32 within 150 steps; ln 200 = 5.298.",
            "The learning rate reached its peak of 4e-4 in the same epoch; there is no gradient clipping.",
        ),
        "todo": (
            "Resume from model_best.pth (step 9,000) with the peak learning rate halved to 2e-4.",
            "Log the gradient norm every step until the peak is passed.",
        ),
        "validity": (
            MetricVerdict("val/top1", "yes", "above chance until step 9,000, 5,794 items", 0.5),
            MetricVerdict("train/loss", "cannot-tell", "label smoothing changes its floor; no value is stated"),
        ),
        "findings": (
            Finding(
                "at-chance",
                "val/top1 is 0.52 %, not different from chance (0.5 %, n = 5,794).",
                "ill",
                "is-p",
                series="val/top1",
                clock="step",
                onset=10000,
                onset_epoch=10.0,
                p=0.41,
                numbers={"chance": 0.5, "last": 0.52},
                places=(Place(file="summary.csv", line=12),),
            ),
            Finding(
                "not-finite",
                "train/loss is NaN or inf in 11 of 320 points.",
                "ill",
                "is",
                series="train/loss",
                clock="step",
                onset=10250,
                end=10750,
                numbers={"first": float("nan")},
                places=(Place(file="train.log", line=206, series="train/loss", at=10250),),
            ),
            Finding("grad-norm-growth", f"odd text {EVIL}", "watch", "suspected", series="grad_norm", onset=3000.0),
        ),
        "clears": (("periodic", Clear("no period")), ("memory-growth", Clear(""))),
        "unknowns": (("scale-collapse", Unknown("no loss scale is logged", ("loss_scale",))),),
        "causes": (
            RankedCause(
                "learning-rate-too-high",
                "The learning rate is too high for this model",
                0.81,
                "suspected",
                explains=("at-chance", "not-finite"),
                evidence=(
                    Evidence(
                        4.2, "Collapse within one epoch of the LR peak (4e-4)", "lr", (Place(series="lr", at=1e4),)
                    ),
                    Evidence(-1.1, "The gradient norm did not grow before", "grad"),
                ),
                summary="A step at the peak threw the weights out of the basin; the loss went to that of the prior.",
                remedies=(
                    Remedy(
                        "Halve the peak learning rate.",
                        (Edit("optimizer.lr", 4e-4, 2e-4, "half"), Edit("clip.norm", None, 1.0)),
                        "try",
                        "train/loss below 2.0 at step 12,000",
                    ),
                ),
                trial="Fork at step 9,000 with lr 4e-4 and 2e-4, 3 seeds, 1,500 steps each.",
                onset=10000,
            ),
            RankedCause(SOMETHING_ELSE, "Something else", 0.19, "suspected"),
        ),
        "ruled_out": (
            RuledOut("folk-scale", "Loss scale 2^21 is not an explosion", "at most 3 overflows in 16,000 steps"),
        ),
        "expected": (Expected("slow-start", "Ten epochs near chance at the start", "the warm-up lasts ten epochs"),),
        "best": BestCheckpoint("model_best.pth", 9000, "val/top1", 30.2, "before the collapse, and on disk", True),
        "missing": (Missing("the gradient norm before the collapse", "tells LR from data", ("lr", "data"), 2.3),),
        "progress": Progress("stopped", 16000, 100000, "step"),
        "notes": ("validation and training are on different clocks",),
    }
    fields.update(changes)
    return Diagnosis(run=run, **fields)
