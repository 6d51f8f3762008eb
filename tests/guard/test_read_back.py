"""What the guard left in a run's folder is one more source of its diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.run.gather import read_runs

torch = pytest.importorskip("torch")

from wheeltapper.guard import guarded  # noqa: E402  (it needs torch)


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small training with one NaN batch at step 150, its guard only watching, and a log of every fifth step."""
    folder = tmp_path_factory.mktemp("run")
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    lines = []
    with guarded(model, optimizer, run_dir=folder, total_steps=160, ask=False) as guard:
        for k in range(160):
            x = torch.randn(8, 4)
            if k == 150:
                x[0, 0] = float("nan")
            loss = (model(guard.keep(x)) - x.sum(1, keepdim=True)).square().mean()
            loss.backward()
            guard.step(loss, batch_id=k)
            optimizer.step()
            optimizer.zero_grad()
            if k % 5 == 0 and k < 150:
                lines.append(json.dumps({"step": k, "train_loss": float(loss.detach())}))
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def test_incidents_are_events_and_findings_with_their_line(left: Path) -> None:
    (diagnosis,) = api.diagnose(left)
    told = [f for f in diagnosis.findings if f.id == "guard-told"]
    assert [(f.severity, f.onset, f.clock) for f in told] == [("watch", 150.0, "step")] * 2
    assert "the guard caught nonfinite-loss at step 150: The loss is nan" in told[0].summary
    assert told[0].places[0].file is not None
    assert told[0].places[0].file.endswith("guard.jsonl")
    assert told[0].places[0].line == 2


def test_beside_a_log_its_steps_are_not_told_again(left: Path) -> None:
    (run,) = read_runs(left)
    assert list(run.series) == ["train/loss"]
    assert run.series["train/loss"].at.tolist() == list(range(0, 150, 5))
    assert not any("batch.pt" in c.path or "random.pt" in c.path for c in run.checkpoints)


def test_without_a_log_its_last_steps_are_the_record(left: Path, tmp_path: Path) -> None:
    for name in ("guard.jsonl", "incident-150/incident.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((left / name).read_bytes())
    (run,) = read_runs(tmp_path)
    loss = run.series["train/loss"]
    assert loss.at.tolist() == list(range(87, 151))
    assert not loss.finite[-1]
    assert loss.finite[:-1].all()
    assert {"train/loss", "grad_norm", "lr"} <= set(run.series)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"event": "incident"', b"[1, 2]\n\xff\xfe", b'{"event": "incident", "severity": 7}'])
def test_damage_costs_a_line_and_never_a_traceback(left: Path, tmp_path: Path, damage: bytes) -> None:
    whole = (left / "guard.jsonl").read_bytes()
    (tmp_path / "guard.jsonl").write_bytes(whole + damage)
    (tmp_path / "train.jsonl").write_bytes((left / "train.jsonl").read_bytes())
    (diagnosis,) = api.diagnose(tmp_path)
    assert sum(f.id == "guard-told" for f in diagnosis.findings) == 2
    (tmp_path / "incident-1").mkdir()
    (tmp_path / "incident-1" / "incident.json").write_bytes(b'{"wheeltapper": 1, "incident": {}, "steps": 3' + damage)
    assert len(api.diagnose(tmp_path)) == 1
