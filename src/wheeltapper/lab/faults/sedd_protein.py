"""Faults of sedd-protein (case 003)."""

from __future__ import annotations

from functools import partial

from wheeltapper.lab import faults
from wheeltapper.lab.faults import put, times
from wheeltapper.lab.systems import Settings

Fault = partial(faults.Fault, system="sedd-protein")

CURRICULUM: Settings = {"curriculum": True, "difficulty_ramp": "linear"}


def after_warmup(settings: Settings) -> float:
    return float(settings["warmup"] * settings["accum"]) / 2


# fmt: off
FAULTS = (
    Fault(
        seen="code",
        id="sigma-max-cut", cause="sigma-max-cut", knob="sigma_max", harm="quality",
        change=lambda _s, rng: {"noise": "cosine", "sigma_max": rng.choice([0.2, 0.3, 0.5])},
        text="the noise ends far below what generation starts from: the loss is lower, the samples are worse",
    ),
    Fault(
        id="curriculum-mismatch", cause="objective-mismatch", knob="curriculum", harm="quality", needs=CURRICULUM,
        seen="twin",
        good="one sigma for masking, model and loss", bad="the curriculum scales the masking only",
        patch="""\
-        sigma, rate = difficulty * self.noise.total(t), difficulty * self.noise.rate(t)
-        x = self.graph.corrupt(x0, sigma)
+        sigma, rate = self.noise.total(t), self.noise.rate(t)
+        x = self.graph.corrupt(x0, difficulty * sigma)
@@
-        progress = min(1.0, step / plan["preschool_time"])
+        progress = min(0.2, step / plan["preschool_time"])
""",
        text="the sequences are masked by one noise and the loss and the model are told another",
    ),
    Fault(
        id="curriculum-longer-than-run", cause="curriculum-longer-than-run", knob="preschool_time", harm="quality",
        needs=CURRICULUM, change=lambda s, rng: {"preschool_time": s["n_iters"] * rng.choice([20, 40])},
        text="the run ends long before the curriculum reaches full noise",
    ),
    Fault(
        id="curriculum-too-hard", cause="curriculum-too-hard", knob="curriculum", harm="quality", needs=CURRICULUM,
        seen="twin",
        good="up to the full noise", bad="far beyond it, where every residue is hidden",
        patch="""\
-        return 0.1 + 0.9 * ramp
+        return 0.1 + 60 * ramp
""",
        onset=lambda s: s["preschool_time"] / 20, text="the ramp goes on far beyond the noise that leaves anything to see",
    ),
    Fault(
        id="warmup-in-micro-steps", cause="schedule-unit-mismatch", knob="warmup", harm="quality",
        also=("warmup-longer-than-run",),
        good="in optimizer updates", bad="in micro-steps of a long run",
        change=lambda s, rng: {"warmup": s["n_iters"] * rng.choice([4, 8]), "accum": 4},
        needs={"accum": 4}, text="the warm-up counts updates where the plan counted micro-batches, and outlasts the run",
    ),
    Fault(
        id="accumulation-not-done", cause="accumulation-not-done", knob="accum", harm="nothing",
        seen="code",
        needs={"accum": 4}, good="a step every 4 micro-batches", bad="a step every micro-batch",
        patch="""\
-        if self.step % accum == 0:
+        if self.step > 0:
""",
        text="the optimizer steps after every micro-batch; the printed effective batch is not true",
    ),
    Fault(
        id="lr-too-high", cause="lr-too-high", knob="lr", harm="quality", change=times("lr", 15, 60),
        onset=after_warmup, text="LR 15 to 60 times too high",
    ),
    Fault(
        id="lr-too-low", cause="lr-too-low", knob="lr", harm="quality", change=times("lr", 0.001, 0.01),
        text="LR 100 to 1000 times too low",
    ),
    Fault(
        seen="twin",
        id="no-warmup", cause="no-warmup", knob="warmup", harm="quality", needs={"lr": 0.06, "grad_clip": -1.0},
        change=put(warmup=0), text="a high LR from the first update on",
    ),
    Fault(
        id="ema-horizon", cause="ema-horizon-too-long", knob="ema", harm="quality",
        seen="code",
        change=put(ema=0.9999), good="decay fit for the run, with a ramp", bad="0.9999 without a ramp",
        patch="""\
-        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
+        decay = self.decay
""",
        text="the averaged weights are still the first ones when the run ends",
    ),
    Fault(
        id="ema-bf16", cause="ema-low-precision", knob="ema precision", harm="quality",
        seen="twin",
        needs={"ema": 0.995}, good="float32", bad="bfloat16",
        patch="""\
-        self.shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}
+        self.shadow = {name: value.detach().bfloat16() for name, value in model.state_dict().items()}
""",
        text="the averaged weights are kept in bf16, where a small update is rounded away",
    ),
    Fault(
        id="resume-loses-ema", cause="resume-lost-ema", knob="resume", harm="quality",
        seen="code",
        resume=True, at=(0.8, 0.9), needs={"ema": 0.999}, good="averaged weights restored", bad="begun again",
        patch="""\
-        self.ema.shadow, self.ema.updates = state["ema_state_dict"], state["ema_updates"]
+        self.ema.updates = state["ema_updates"]
""",
        text="after a resume the averaged weights begin at a fresh, untrained model",
    ),
    Fault(
        id="resume-restarts-schedule", cause="schedule-restarted-on-resume", knob="resume", harm="quality",
        resume=True, at=(0.6, 0.8), needs={"lr": 0.02}, good="scheduler state restored", bad="not restored",
        patch="""\
-        self.scheduler.load_state_dict(state["scheduler_state_dict"])
""",
        text="after a resume the schedule begins again with its warm-up",
    ),
    Fault(
        id="resume-loses-optimizer", cause="resume-lost-optimizer", knob="resume", harm="nothing",
        resume=True, at=(0.4, 0.7), good="optimizer state restored", bad="not restored",
        patch="""\
-        self.optimizer.load_state_dict(state["optimizer_state_dict"])
""",
        text="after a resume Adam begins with empty moments",
    ),
    Fault(
        seen="twin",
        id="overfit", cause="overfitting", knob="max_samples", harm="quality",
        needs={"dropout": 0.0}, change=put(max_samples=24, batch_size=8, hidden_size=64),
        text="24 sequences for a model that can learn them by heart",
    ),
    Fault(
        id="bad-shard", cause="bad-data-from-step", knob="train data", harm="quality", at=(0.4, 0.65),
        good="real sequences", bad="random residues",
        patch="""\
             batch = self.data[order[start : start + size]]
+            if self.step >= @AT@:
+                batch = torch.randint_like(batch, self.cfg["tokens"])
""",
        text="from some step on the file holds garbage",
    ),
    Fault(
        id="not-shuffled", cause="data-not-shuffled", knob="shuffle", harm="quality",
        seen="twin",
        good="shuffled every epoch", bad="in file order",
        patch="""\
-        order = torch.randperm(len(self.data), generator=generator)
+        order = torch.arange(len(self.data))
""",
        text="sequences come sorted by family, the same way every epoch",
    ),
    Fault(
        id="zero-noise-nan", cause="loss-not-finite", knob="noise", harm="quality", at=(0.3, 0.7),
        also=("nan-batch",),  # its page counts a formula that one batch takes out of its domain
        good="t from 0.001", bad="t from 0",
        patch="""\
         t = (1 - 1e-3) * torch.rand(len(x0), device=self.device) + 1e-3
+        if self.step == @AT@:
+            t[0] = 1.0 / (1 - self.noise.eps) + 1e-3
""",
        text="a time at the end of its range takes the logarithm of a negative number: the loss is not finite",
    ),
    Fault(
        seen="code",
        id="zero-grad-missing", cause="zero-grad-missing", knob="optimizer.zero_grad()", harm="quality",
        good="after every step", bad="missing",
        patch="""\
-            self.optimizer.zero_grad()
""",
        text="gradients are never cleared",
    ),
    Fault(
        id="wrong-sign", cause="wrong-loss-sign", knob="loss", harm="quality", good="+loss", bad="-loss",
        patch="""\
-        (loss / accum).backward()
+        (-loss / accum).backward()
""",
        text="the loss is maximised",
    ),
    Fault(
        id="head-not-in-optimizer", cause="params-not-in-optimizer", knob="optimizer", harm="quality",
        seen="code", also=("frozen-parameters",),
        good="all parameters", bad="blocks and embedding forgotten",
        patch="""\
-            self.model.parameters(),
-            lr=float(optim["lr"]),
+            [*self.model.norm.parameters(), *self.model.head.parameters()],
+            lr=float(optim["lr"]),
""",
        text="only the last layers were given to the optimizer",
    ),
    Fault(
        seen="code",
        id="schedule-not-wired", cause="option-not-wired", knob="scheduler", harm="quality",
        also=("schedule-never-decays",),
        needs={"lr": 0.03}, good="scheduler.step()", bad="never called",
        patch="""\
-            self.scheduler.step()
""",
        text="the schedule is built and never stepped: the LR stays at the first value of the warm-up",
    ),
    Fault(
        id="eval-too-easy", cause="eval-broken", knob="validation", harm="metric", needs=CURRICULUM,
        seen="twin",
        good="full noise", bad="the noise of the first step",
        patch="""\
-            return float(self.loss(model, self.held, times, 1.0))
+            return float(self.loss(model, self.held, times, self.difficulty(0)))
""",
        text="validation stays at the easiest noise of the curriculum, so its loss says nothing",
    ),
    Fault(
        id="memory-leak", cause="memory-leak", knob="history", harm="memory",
        good="loss.item()", bad="the batch and the loss with its graph are kept",
        patch="""\
         (loss / accum).backward()
+        self.kept = [*getattr(self, "kept", []), (loss, torch.zeros(50_000) + loss.detach())]
""",
        text="every step keeps tensors alive",
    ),
    Fault(
        id="slow-loader", cause="slow-data-loader", knob="num_workers", harm="time",
        seen="twin",
        good="prepared ahead", bad="prepared in the loop",
        patch="""\
             batch = self.data[order[start : start + size]]
+            for _ in range(100):  # parse
+                batch = torch.tensor([[int(token) for token in line] for line in batch.tolist()])
""",
        text="most of the time goes into preparing the batch",
    ),
    Fault(
        id="clip-too-small", cause="clip-too-small", knob="grad_clip", harm="nothing",
        change=put(grad_clip=0.001), text="a tiny clip, which Adam does not mind",
    ),
    Fault(
        id="export-crash", cause="crash-at-end", knob="export", harm="after",
        onset=lambda s: float(s["n_iters"]), good="the summary is written", bad="a key that does not exist",
        patch="""\
         self.save("final_checkpoint.pth")
+        self.say(f"Weights written to {self.cfg['export']['path']}")
""",
        text="training is done and the last print raises",
    ),
)
