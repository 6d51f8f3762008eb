"""Each system, healthy, at half of the smallest size: it learns, and leaves what its original leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from wheeltapper.lab.launch import plan_run, run  # noqa: E402
from wheeltapper.lab.systems import system  # noqa: E402
from wheeltapper.lab.truth import Truth  # noqa: E402

# Half the length, so that CI pays seconds; what must be reached is set below the least of ten seeds.
HALF = {
    "resnet-ddp": ({"epochs": 20, "warmup_epochs": 6}, 40.0),  # percent; chance is 10
    "sr-nano": ({"total_iter": 160, "milestones": [80, 120]}, 0.0),  # held against bicubic below
    "sedd-protein": ({"n_iters": 320}, -2.0),  # nats; an untrained model scores -3
    "edm-prior": ({"max_steps": 160}, 24.0),  # dB; the noisy tiles have 20
}
_done: dict[str, tuple[Truth, Path]] = {}


@pytest.fixture
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Truth, Path]:
    """The healthy run of a system, made once."""
    name: str = request.param
    if name not in _done:
        out = tmp_path_factory.mktemp(name)
        truth = run(plan_run(name, "test", 5, None, HALF[name][0]), out)
        _done[name] = truth, out / "runs" / truth.run
    return _done[name]


def halves(values: list[str]) -> tuple[float, float]:
    """The mean of the first and of the last fifth."""
    numbers = [float(v) for v in values]
    n = len(numbers) // 5
    return sum(numbers[:n]) / n, sum(numbers[-n:]) / n


@pytest.mark.parametrize("trained", ["resnet-ddp", "sr-nano", "sedd-protein", "edm-prior"], indirect=True)
def test_a_healthy_run_reaches_its_result(trained: tuple[Truth, Path]) -> None:
    truth, folder = trained
    home = system(truth.system)
    assert truth.ended == "finished"
    assert truth.score is not None
    assert truth.score >= HALF[truth.system][1]
    assert truth.reported is not None
    assert abs(truth.reported - truth.score) < 5 * home.NOISE
    assert not list(folder.rglob("*truth*"))


@pytest.mark.parametrize("trained", ["resnet-ddp"], indirect=True)
def test_resnet_leaves_the_originals_files(trained: tuple[Truth, Path]) -> None:
    _, folder = trained
    lines = (folder / "logs" / "epoch_progress.log").read_text().splitlines()
    shape = (
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] Epoch \d+/20 \| Train: [\d.]+% \(loss: [\d.]+\) \| "
        r"Val: [\d.]+% \(loss: [\d.]+\) \| LR: \d\.\d{6} \| Best: [\d.]+%"
    )
    assert len(lines) == 20
    assert all(re.fullmatch(shape, line) for line in lines)
    first, last = halves(re.findall(r"Train: [\d.]+% \(loss: ([\d.]+)\)", "\n".join(lines)))
    assert last < 0.85 * first
    log = (folder / "logs" / "train.log").read_text()
    assert "Configuration: {'mode': 'distributed'" in log
    assert "Train batches: 8" in log
    state = torch.load(folder / "checkpoints" / "checkpoint_epoch_12.pt", weights_only=True)
    assert {"epoch", "model_state_dict", "optimizer_state_dict", "best_accuracy", "config"} <= set(state)


@pytest.mark.parametrize("trained", ["sr-nano"], indirect=True)
def test_sr_beats_bicubic_and_leaves_the_originals_files(trained: tuple[Truth, Path]) -> None:
    from wheeltapper.lab.systems.sr_nano.data import bicubic, degrade, make_scenes, psnr

    truth, folder = trained
    gt = make_scenes(truth.settings["val_images"], 64, truth.seed + 1)
    assert truth.score is not None
    assert truth.score > psnr(bicubic(degrade(gt, 2), 2), gt) + 0.05
    (log,) = folder.glob("experiments/2xParagonSR2_Nano/train_2xParagonSR2_Nano_*.log")
    text = log.read_text()
    shape = (
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO: \[epoch: [ \d]+, iter: [ ,\d]+, lr:\(\d\.\d{3}e-\d\d\)\] "
        r"\[performance: [\d.]+ it/s\] \[eta: .*?\] \[peak VRAM: [\d.]+ GB\] .*l_g_total: \d\.\d{4}e.*scale_g: 6\.5536e\+04"
    )
    assert len(re.findall(shape, text)) == 32
    assert len(re.findall(r"\t # psnr : +[\d.]+\tBest: +[\d.]+ @ +\d+ iter", text)) == 16
    assert (folder / "experiments/2xParagonSR2_Nano/models/net_g_ema_160.safetensors").exists()
    assert list(folder.glob("tb_logger/*/events.out.tfevents.*"))


@pytest.mark.parametrize("trained", ["sedd-protein"], indirect=True)
def test_sedd_learns_and_starts_at_the_untrained_loss(trained: tuple[Truth, Path]) -> None:
    _, folder = trained
    text = (folder / "train.out").read_text()
    losses = [float(v) for v in re.findall(r"Validation loss at step \d+: ([\d.]+)", text)]
    assert losses[0] < 3.3  # an untrained model scores ln 20 = 3.0 (KNOWLEDGE DIF-13)
    assert losses[-1] < 0.7 * 3.0
    assert re.search(r"Epoch 1/\d+: +\d+%\|.*loss=[\d.]+, lr=[\d.e-]+, step=4/320, gpu_mem=[\d.]+GB\]", text)
    assert list(folder.glob("wandb/offline-run-*/run-*.wandb"))
    assert (folder / "checkpoints" / "best_checkpoint.pth").exists()


@pytest.mark.parametrize("trained", ["edm-prior"], indirect=True)
def test_edm_starts_at_one_and_learns(trained: tuple[Truth, Path]) -> None:
    _, folder = trained
    text = (folder / "logs" / "poisson_diffusion.log").read_text()
    steps = re.findall(r" - poisson_diffusion - INFO - Step (\d+): Loss = ([\d.]+)", text)
    assert len(steps) == 80
    assert 0.5 < sum(float(v) for _, v in steps[:5]) / 5 < 1.5  # zero-initialised EDM: 1.0 (KNOWLEDGE DIF-02)
    first, last = halves(re.findall(r"Validation Loss: ([\d.]+)", text))
    assert last < 0.8 * first
    assert (folder / "results" / "prior_clean" / "checkpoint_step_0000160.pth").exists()
    assert "LEARNING_RATE=" in (folder / "run_prior_clean.sh").read_text()


def test_the_untrained_loss_of_both_graphs_is_known() -> None:
    """Uniform scores cost ln V per residue at most; the truth about x0 as a score costs nothing."""
    from wheeltapper.lab.systems.sedd_protein.model import SEDD, Graph, Noise

    torch.manual_seed(0)
    x0 = torch.randint(0, 20, (4000, 16))
    times = torch.linspace(1e-3, 1 - 1e-3, 4000)
    for kind, noise, expected in (
        ("absorb", Noise("loglinear", 1e-4, 8.0), 2.996),
        ("absorb", Noise("cosine", 1e-4, 0.8), 2.996 * (1 - 0.4493)),
    ):
        graph = Graph(kind, 20)
        model = SEDD(graph, 16, 32, 1, 2, 0.0)
        sigma = noise.total(times)
        x = graph.corrupt(x0, sigma)
        with torch.no_grad():
            loss = (noise.rate(times) * graph.entropy(model(x, sigma), sigma, x, x0)).mean() / 16
        assert loss.item() == pytest.approx(expected, rel=0.05)
    graph = Graph("uniform", 20)
    sigma = torch.full((10,), 0.7)
    x = graph.corrupt(x0[:10], sigma)
    chance = torch.nn.functional.one_hot(x0[:10], 20) * torch.exp(-sigma)[:, None, None]
    chance = chance + ((1 - torch.exp(-sigma)) / 20)[:, None, None]
    perfect = (chance / chance.gather(-1, x[..., None])).log()
    assert graph.entropy(perfect, sigma, x, x0[:10]).abs().max() < 1e-4
    assert (graph.entropy(perfect + 0.3, sigma, x, x0[:10]) > 0.1).all()
