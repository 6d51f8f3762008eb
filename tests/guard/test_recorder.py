"""The recorder writes whole folders or none, from incidents and from crashes; replay shows them and runs the step again."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import runpy
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from wheeltapper.cli.main import main  # noqa: E402
from wheeltapper.errors import Damaged, NothingToRead  # noqa: E402
from wheeltapper.guard import Guard, Incident, guarded, rng  # noqa: E402
from wheeltapper.guard.crash import CrashWriter  # noqa: E402
from wheeltapper.guard.recorder import FOLDERS, Recorder  # noqa: E402
from wheeltapper.guard.replay import read_incident, script_of  # noqa: E402


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 2))


def train(
    folder: Path | None, *, steps: int = 6, bad: int | None = 4, keep: int = 64
) -> tuple[Guard, Recorder, list[Any]]:
    """A loop whose batch `bad` has an infinite value. Returns the weights before each step too."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    guard = Guard(model, optimizer, run_dir=folder)
    recorder = Recorder(guard, keep=keep)
    before = []
    for i in range(steps):
        x, y = recorder.keep((torch.randn(5, 4), torch.arange(5) % 2))
        if i == bad:
            x[0, 0] = math.inf
        before.append({k: v.clone() for k, v in model.state_dict().items()})
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        guard.step(loss, batch_id=[i, i + 100])
        optimizer.step()
        if i == bad:
            break
    guard.flush()
    return guard, recorder, before


def caught(guard: Guard, **facts: Any) -> Incident:
    last = guard.history[-1]
    return Incident("nonfinite", last.step, last.tick, 1.0, "the gradient is not finite", "error", facts=facts)


def test_an_incident_becomes_a_folder_that_reads_back(tmp_path: Path) -> None:
    """The guard itself catches a loss and gradients that are not finite: one folder for the step."""
    guard, recorder, _ = train(tmp_path)
    (folder,) = recorder.written
    assert folder == tmp_path / "incident-4"
    assert recorder.write(caught(guard, norm=math.inf)) == folder
    replay = read_incident(folder)
    assert replay.step == 4
    assert [s["step"] for s in replay.steps] == [0, 1, 2, 3, 4]
    assert math.isnan(replay.steps[-1]["loss"])
    assert replay.steps[3]["batch_id"] == [[3, 103]] or replay.steps[3]["batch_id"] == [3, 103]
    assert replay.incident["kind"] == "nonfinite-loss"
    assert [a["kind"] for a in replay.also] == ["nonfinite", "nonfinite"]
    assert math.isinf(replay.also[-1]["facts"]["norm"])
    assert replay.tensors[0] == "0.weight", "the first parameter whose gradient is not finite"
    json.loads((folder / "incident.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]
    states = torch.load(folder / "random.pt", weights_only=True)
    assert 4 in states["ticks"]
    assert torch.load(folder / "batch.pt", weights_only=True)["batches"][-1][0] == 4


def test_the_random_states_are_those_before_the_step(tmp_path: Path) -> None:
    guard, recorder, _ = train(tmp_path)
    folder = recorder.write(caught(guard))
    states = torch.load(folder / "random.pt", weights_only=True)
    held = dict(torch.load(folder / "batch.pt", weights_only=True)["batches"])
    rng.restore(states["states"][states["ticks"].index(3)])
    assert torch.equal(torch.randn(5, 4), held[3][0]), "drawing again gives the batch of step 3"


def test_random_states_survive_a_round_trip() -> None:
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    random.gauss(0, 1), np.random.randn()
    state = rng.capture()
    first = random.random(), random.gauss(0, 1), np.random.randn(), torch.rand(3).tolist()
    rng.restore(state)
    assert (random.random(), random.gauss(0, 1), np.random.randn(), torch.rand(3).tolist()) == first
    with rng.kept():
        torch.rand(3)
    after = torch.rand(2)
    rng.restore(state)
    torch.rand(3)
    assert torch.equal(torch.rand(2), after)


def test_incidents_reported_to_the_guard_are_written_notes_are_not(tmp_path: Path) -> None:
    guard, recorder, _ = train(tmp_path, bad=None)
    guard.report(Incident("note", 5, 5, 0.0, "nothing much", "note"))
    assert recorder.written == []
    guard.report(Incident("norm-outlier", 5, 5, 0.0, "a jump"))
    guard.report(Incident("precursor", 5, 5, 0.0, "another at the same step"))
    assert [p.name for p in recorder.written] == ["incident-5"]
    _, later, _ = train(tmp_path, bad=None)
    later.write(Incident("x", 5, 5, 0.0, "a new launch in the same folder"))
    assert [p.name for p in later.written] == ["incident-5.2"]


def test_the_ring_and_the_folders_are_bounded(tmp_path: Path) -> None:
    guard, recorder, _ = train(tmp_path, bad=None, steps=9, keep=4)
    assert [s.step for s in recorder.steps] == [5, 6, 7, 8]
    for n in range(FOLDERS + 5):
        guard.report(Incident("x", n, n, 0.0, "x"))
    assert len(list(tmp_path.glob("incident-*"))) == FOLDERS


def test_a_large_batch_is_left_out_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.guard.recorder.BATCH_BYTES", 50)
    guard, recorder, _ = train(tmp_path)
    replay = read_incident(recorder.write(caught(guard)) or "")
    assert "batch.pt" not in replay.files
    assert "left out" in replay.notes[0]


def test_what_is_not_a_tensor_is_left_out_with_a_word(tmp_path: Path) -> None:
    _guard, recorder, _ = train(tmp_path, bad=None)
    recorder.keep({"x": torch.ones(2), "path": Path("a"), "id": "q"})
    replay = read_incident(recorder.write(Incident("x", 6, 6, 0.0, "x")) or "")
    assert any("PosixPath" in note or "WindowsPath" in note for note in replay.notes)
    held = torch.load(replay.folder / "batch.pt", weights_only=True)["batches"][-1][1]
    assert held["id"] == "q"


def test_a_disk_that_refuses_does_not_stop_training(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    guard, recorder, _ = train(tmp_path / "file" / "run", bad=None)
    guard.report(Incident("x", 1, 1, 0.0, "x"))
    guard.report(Incident("x", 2, 2, 0.0, "x"))
    assert recorder.written == []
    assert sum("could not be written" in r.message for r in caplog.records) == 1
    assert guard.passive is None


def test_recording_changes_nothing(tmp_path: Path) -> None:
    def weights(record: bool) -> list[float]:
        model = net()
        optimizer = torch.optim.AdamW(model.parameters(), 0.01)
        if record:
            guard = Guard(model, optimizer, run_dir=tmp_path)
            recorder = Recorder(guard)
            crash = CrashWriter(recorder).install()
        for i in range(20):
            x, y = torch.randn(5, 4), torch.arange(5) % 2
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            if record:
                recorder.keep((x, y))
                guard.step(loss)
                if i == 10:
                    guard.report(Incident("x", i, i, 0.0, "x"))
            optimizer.step()
        if record:
            crash.close()
            guard.close()
            assert len(recorder.written) == 1
        return [*torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), float(torch.rand(1))]

    assert weights(False) == weights(True)


def test_an_exception_that_nobody_catches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chained: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, _error, _trace: chained.append(kind.__name__))
    _, recorder, _ = train(tmp_path, bad=None)
    writer = CrashWriter(recorder).install()
    try:
        raise RuntimeError("CUDA error: device-side assert")
    except RuntimeError:
        sys.excepthook(*sys.exc_info())  # what the interpreter does at the end of a program
    writer.close()
    assert chained == ["RuntimeError"]
    replay = read_incident(tmp_path)
    assert replay.incident["kind"] == "crash"
    assert replay.incident["facts"]["exception"] == "RuntimeError"
    assert "test_recorder.py" in replay.incident["facts"]["frames"][-1]
    assert len(replay.steps) == 6


def test_an_interruption_is_written_as_one(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)

    def one_step(guard: Any) -> None:
        loss = model(torch.ones(1, 4)).sum()
        loss.backward()
        guard.step(loss)
        optimizer.step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), guarded(model, optimizer, run_dir=tmp_path, ask=False) as guard:
        one_step(guard)
    replay = read_incident(tmp_path)
    assert (replay.incident["kind"], replay.incident["severity"]) == ("interrupted", "note")
    assert len(replay.steps) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_sigterm_is_written_and_still_ends_the_program(tmp_path: Path) -> None:
    _, recorder, _ = train(tmp_path, bad=None)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        CrashWriter(recorder).install()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert read_incident(tmp_path).incident["facts"]["signal"] == "SIGTERM"


def test_handlers_are_put_back(tmp_path: Path) -> None:
    _, recorder, _ = train(tmp_path, bad=None)
    hook, handler = sys.excepthook, signal.getsignal(signal.SIGTERM)
    calls: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: calls.append(number))
    mine = signal.getsignal(signal.SIGTERM)
    try:
        with CrashWriter(recorder):
            assert sys.excepthook is not hook
            os.kill(os.getpid(), signal.SIGTERM)
            deadline = time.monotonic() + 5
            while not calls and time.monotonic() < deadline:
                time.sleep(0.01)
        assert calls == [signal.SIGTERM], "the handler that was there is called too"
        assert sys.excepthook is hook
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert len(recorder.written) == 1
    with pytest.raises(ValueError, match="lost"), CrashWriter(recorder):
        raise ValueError("lost")
    assert read_incident(recorder.written[-1]).also[-1]["facts"]["message"] == "lost"


def fill_in(script: str, weights: Path) -> str:
    """What a user would write at the marks."""
    script = script.replace(
        'raise SystemExit("fill in build_model(): the model with its weights from before step 4")',
        "model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))\n"
        f"    model.load_state_dict(torch.load({str(weights)!r}, weights_only=True))\n    return model",
    )
    return script.replace(
        'raise SystemExit("fill in compute_loss(model, batch)")',
        "return torch.nn.functional.cross_entropy(model(batch[0]), batch[1])",
    )


def run_script(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_script_runs_the_step_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard, recorder, before = train(tmp_path)
    torch.save(before[4], tmp_path / "weights.pt")
    script = script_of(read_incident(recorder.write(caught(guard)) or ""))
    ast.parse(script)
    path = tmp_path / "again.py"
    path.write_text(fill_in(script, tmp_path / "weights.pt"))
    out = run_script(path, capsys)
    assert "random states restored" in out
    assert "not finite in float32 either" in out
    assert "the forward pass is not finite from 0 on" in out


def test_the_script_gives_the_recorded_loss(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Dropout and all: the same weights, batch and random numbers give the loss of the record."""
    guard, recorder, before = train(tmp_path, bad=None, steps=5)
    torch.save(before[4], tmp_path / "weights.pt")
    script = script_of(read_incident(recorder.write(caught(guard)) or ""))
    # The loop draws its batch after the boundary; the replay reads it from the file, so it must draw it too.
    script = script.replace(
        "    return saved[TICK]\n", "    restore_random()\n    torch.randn(5, 4)\n    return saved[TICK]\n"
    )
    script = script.replace("    print(restore_random())\n", "")
    path = tmp_path / "again.py"
    path.write_text(fill_in(script, tmp_path / "weights.pt"))
    line = next(line for line in run_script(path, capsys).splitlines() if line.startswith("loss in float32"))
    assert float(line.split()[3]) == pytest.approx(guard.history[-1].loss, rel=1e-5)


def test_an_unfilled_script_says_what_to_fill_in(tmp_path: Path) -> None:
    guard, recorder, _ = train(tmp_path)
    path = tmp_path / "again.py"
    path.write_text(script_of(read_incident(recorder.write(caught(guard)) or "")))
    with pytest.raises(SystemExit, match=r"fill in build_model\(\)"):
        runpy.run_path(str(path), run_name="__main__")


def test_text_from_a_folder_cannot_become_code(tmp_path: Path) -> None:
    _guard, recorder, _ = train(tmp_path)
    evil = '"""\nimport os; os.system("x")\n"""'
    folder = recorder.write(Incident("x", 9, 9, 0.0, evil, facts={"tensors": [evil]}))
    page = json.loads((folder / "incident.json").read_text())
    page["steps"][-1]["batch_id"] = evil
    page["steps"][-1]["loss"] = 'float("nan"); import os'
    page["model"]["class"] = evil
    (folder / "incident.json").write_text(json.dumps(page))
    tree = ast.parse(script_of(read_incident(folder)))
    assert not [n for n in ast.walk(tree) if isinstance(n, ast.Import) and n.names[0].name == "os"]


def test_replay_shows_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guard, recorder, _ = train(tmp_path)
    recorder.write(caught(guard))
    assert main(["replay", str(tmp_path), "--script", str(tmp_path / "again.py"), "--width", "120"]) == 0
    out = capsys.readouterr().out
    assert "nonfinite-loss at step 4" in out
    assert "gradients not finite" in out
    assert "also: 4 of 4 gradients are not finite" in out
    assert "0.weight" in out
    compile((tmp_path / "again.py").read_text(), "again.py", "exec")


def test_what_is_no_incident_is_an_error_with_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NothingToRead):
        read_incident(tmp_path)
    for text in ("{", "[]", '{"incident": 3}', "[" * 100_000):
        (tmp_path / "incident.json").write_text(text)
        with pytest.raises(Damaged):
            read_incident(tmp_path)
    (tmp_path / "incident.json").write_text(
        '{"incident": {"step": "x", "text": "\\u001b[31m"}, "steps": [1, {}], "model": 4}'
    )
    assert main(["replay", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["replay", str(tmp_path / "nowhere")]) == 2


def test_a_script_that_was_filled_in_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path / "run")
    again = tmp_path / "again.py"
    words = ["replay", str(tmp_path / "run"), "--script", str(again)]
    assert main(words) == 0
    assert main(words) == 0, "as it was written"
    again.write_text(again.read_text().replace("FILL IN", "done"))
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err
    assert "done" in again.read_text()
