"""Faults and healthy twins of programs on frameworks: id, text, what is healthy in it, the fault in its place."""

from __future__ import annotations

KERAS = """
import keras
import numpy as np
from keras import layers

images, digits = keras.datasets.mnist.load_data()[0]
others, answers = keras.datasets.mnist.load_data()[1]
images = images.astype("float32") / 255.0
others = others.astype("float32") / 255.0
base = keras.applications.MobileNetV2(include_top=False)
base.trainable = False
net = keras.Sequential([layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(10)])
plan = keras.optimizers.schedules.CosineDecay(1e-3, decay_steps=20 * (len(images) // 64))
net.compile(
    optimizer=keras.optimizers.Adam(plan),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
)
net.fit(images, digits, batch_size=64, epochs=20, validation_data=(others, answers))
"""
TFDATA = """
import keras
import tensorflow as tf

def small(x, y):
    return x / 255.0, y

def stretch(x, y):
    return tf.image.random_flip_left_right(x), y

rows = tf.data.Dataset.from_tensor_slices((tf.io.read_file("a"), tf.io.read_file("b")))
rows = rows.shuffle(10000, seed=4, reshuffle_each_iteration=False)
held = rows.take(500).map(small).batch(32)
learn = rows.skip(500).map(small).cache().map(stretch).batch(32)
net = keras.Sequential([keras.layers.Dense(3, activation="softmax")])
net.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
net.fit(learn, validation_data=held, epochs=5)
"""
TRACED = """
import keras
import tensorflow as tf

class Mixed(keras.Model):
    def __init__(self, inner, share):
        super().__init__()
        self.inner, self.share = inner, share

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.share * tf.reduce_mean((self.inner(x, training=True) - y) ** 2)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}

class Raise(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.model.share.assign(min(1.0, epoch / 10))

model = Mixed(keras.Sequential([keras.layers.Dense(1)]), tf.Variable(0.0, trainable=False))
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(tf.data.Dataset.load("rows"), epochs=20, callbacks=[Raise()])
"""
TRAINER = """
import math
import numpy as np
import torch
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

words = AutoTokenizer.from_pretrained("bert-base-uncased")
reviews = load_dataset("imdb").map(lambda r: words(r["text"], truncation=True, max_length=256), batched=True)
judge = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
how = TrainingArguments("out", learning_rate=3e-5, num_train_epochs=3, eval_strategy="epoch", fp16=True)
coach = Trainer(model=judge, args=how, train_dataset=reviews["train"], eval_dataset=reviews["test"])
coach.train()
print("perplexity", math.exp(coach.evaluate()["eval_loss"]))
"""
SEQ = """
import evaluate
import numpy as np
from datasets import load_dataset
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

tok = AutoTokenizer.from_pretrained("facebook/bart-base")
net = AutoModelForSeq2SeqLM.from_pretrained("facebook/bart-base")
bleu = evaluate.load("sacrebleu")

def prepare(rows):
    return tok(rows["german"], text_target=rows["english"], truncation=True, max_length=128)

def measure(out):
    guess, gold = out
    gold = np.where(gold != -100, gold, tok.pad_token_id)
    return bleu.compute(predictions=tok.batch_decode(guess), references=tok.batch_decode(gold))

pairs = load_dataset("wmt").map(prepare, batched=True)
how = Seq2SeqTrainingArguments("out", learning_rate=2e-5, predict_with_generate=True, fp16=True)
pad = DataCollatorForSeq2Seq(tok, model=net, label_pad_token_id=-100)
Seq2SeqTrainer(
    model=net, args=how, train_dataset=pairs["train"], eval_dataset=pairs["validation"], data_collator=pad, compute_metrics=measure
).train()
"""
CHAT = """
from datasets import load_dataset
from peft import LoraConfig
from trl import SFTConfig, SFTTrainer

def turn(row):
    return {"prompt": "Q: " + row["ask"], "completion": row["reply"]}

rows = load_dataset("json", data_files="chat.jsonl", split="train").map(turn)
SFTTrainer(
    model="Qwen/Qwen2.5-0.5B", args=SFTConfig("out", learning_rate=2e-4, max_length=512), train_dataset=rows, peft_config=LoraConfig(r=8),
).train()
"""
PICTURES = """
import torch
from datasets import load_dataset
from torchvision.transforms import v2
from transformers import AutoModelForImageClassification, Trainer, TrainingArguments

shape = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5, 0.5, 0.5], [0.5, 0.5, 0.5])])

def look(rows):
    return {"pixel_values": [shape(p) for p in rows["picture"]], "labels": rows["labels"]}

photos = load_dataset("food").with_transform(look)
Trainer(
    model=AutoModelForImageClassification.from_pretrained("vit"), args=TrainingArguments("out", learning_rate=1e-4, remove_unused_columns=False),
    train_dataset=photos["train"], eval_dataset=photos["validation"],
).train()
"""
LIGHT = """
import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
from torch import nn

class Judge(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(20, 3)
        self.right_train = torchmetrics.Accuracy("multiclass", num_classes=3)
        self.right_val = torchmetrics.Accuracy("multiclass", num_classes=3)

    def training_step(self, batch, i):
        x, y = batch
        out = self.net(x)
        self.right_train.update(out, y)
        self.log("train", self.right_train)
        return F.cross_entropy(out, y)

    def validation_step(self, batch, i):
        x, y = batch
        self.right_val.update(self.net(x), y)
        self.log("val", self.right_val)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

L.Trainer(max_epochs=30, limit_train_batches=1.0).fit(Judge(), train_dataloaders=torch.load("a"), val_dataloaders=torch.load("b"))
"""
BY_HAND = """
import lightning as L
import torch
import torch.nn.functional as F
from torch import nn

class Own(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Linear(20, 3)

    def training_step(self, batch, i):
        x, y = batch
        opt = self.optimizers()
        opt.zero_grad()
        self.manual_backward(F.cross_entropy(self.net(x), y))
        opt.step()

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [opt], [torch.optim.lr_scheduler.StepLR(opt, 10)]

L.Trainer(max_epochs=30).fit(Own(), train_dataloaders=torch.load("a"))
"""
WORLD = """
import gymnasium as gym
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

class Reach(gym.Env):
    def __init__(self):
        self.limit = 200

    def _observe(self):
        return np.array([self.arm, self.spot], np.float32)

    def _distance(self):
        return abs(self.arm - self.spot)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.arm = self.np_random.uniform(-1, 1)
        self.spot = self.np_random.uniform(-1, 1)
        self.n = 0
        return self._observe(), {}

    def step(self, action):
        old = self._distance()
        self.arm += 0.1 * float(action[0])
        self.n += 1
        reward = old - self._distance()
        done = bool(self._distance() < 0.01)
        return self._observe(), reward, done, self.n >= self.limit, {}

def falling(first):
    return lambda left: first * left

env = VecNormalize(DummyVecEnv([Reach]))
agent = PPO("MlpPolicy", env, learning_rate=falling(3e-4), gamma=0.99)
agent.learn(total_timesteps=400_000)
env.save("stats.pkl")
test = VecNormalize.load("stats.pkl", DummyVecEnv([Reach]))
test.training, test.norm_reward = False, False
print(evaluate_policy(agent, test, n_eval_episodes=10))
"""
JAX = """
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

class Small(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Dropout(0.1, deterministic=not train)(nn.relu(nn.Dense(32)(x)))
        return nn.Dense(4)(x)

net = Small()
tx = optax.adam(1e-3)

@jax.jit
def update(weights, memory, key, x, y):
    def cost(w):
        out = net.apply({"params": w}, x, train=True, rngs={"dropout": key})
        return optax.softmax_cross_entropy_with_integer_labels(out, y).mean()
    value, grads = jax.value_and_grad(cost)(weights)
    change, memory = tx.update(grads, memory, weights)
    return optax.apply_updates(weights, change), memory, value

def right(weights, x, y):
    return (net.apply({"params": weights}, x, train=False).argmax(-1) == y).mean()

x, y, vx, vy = (np.load(f"{n}.npy") for n in ("x", "y", "vx", "vy"))
key = jax.random.key(1)
weights = net.init(key, x[:1], train=False)["params"]
memory = tx.init(weights)
for epoch in range(10):
    for i in range(100):
        key, now = jax.random.split(key)
        weights, memory, value = update(weights, memory, now, x[i * 32 : i * 32 + 32], y[i * 32 : i * 32 + 32])
    print(sum(float(right(weights, vx[j : j + 50], vy[j : j + 50])) for j in range(4)))
"""
TABLE = """
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

x, y, who = np.load("x.npy"), np.load("y.npy"), np.load("who.npy")
for fit, held in GroupKFold(5).split(x, y, groups=who):
    weight = (y[fit] == 0).sum() / (y[fit] == 1).sum()
    trees = xgb.XGBClassifier(n_estimators=2000, scale_pos_weight=weight, early_stopping_rounds=50)
    trees.fit(x[fit], y[fit], eval_set=[(x[held], y[held])])
    print(roc_auc_score(y[held], trees.predict_proba(x[held])[:, 1]))

line = SGDClassifier(loss="log_loss", alpha=1e-4)
for part in pd.read_csv("stream.csv", chunksize=1000):
    line.partial_fit(part[["a", "b"]].to_numpy(), part["c"].to_numpy(), classes=[0, 1])
"""
ACCELERATED = """
import math
import torch
from accelerate import Accelerator
from torch.optim.swa_utils import AveragedModel
from torch import nn
from torch.utils.data import DataLoader
from transformers import get_cosine_schedule_with_warmup
from rows import Rows

engine = Accelerator(gradient_accumulation_steps=8)
net = nn.Sequential(nn.Linear(40, 80), nn.ReLU(), nn.Linear(80, 5))
loader = DataLoader(Rows("train"), batch_size=16, shuffle=True)
held = DataLoader(Rows("val"), batch_size=16)
plain, heavy = [], []
for name, p in net.named_parameters():
    (heavy if p.ndim > 1 else plain).append(p)
opt = torch.optim.AdamW([{"params": heavy, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
mean = AveragedModel(net)
net, opt, loader, held = engine.prepare(net, opt, loader, held)
plan = get_cosine_schedule_with_warmup(opt, 100, 12 * math.ceil(len(loader) / 8))
engine.register_for_checkpointing(plan)
engine.load_state("last")
cost = nn.CrossEntropyLoss()
best = 1e9
for epoch in range(12):
    net.train()
    for x, y in loader:
        with engine.accumulate(net):
            loss = cost(net(x), y)
            engine.backward(loss)
            opt.step()
            if engine.sync_gradients:
                plan.step()
            opt.zero_grad()
        mean.update_parameters(net)
    mean.eval()
    with torch.no_grad():
        worst = sum(cost(mean(x), y).item() for x, y in held)
    engine.save_state("last")
    if worst < best:
        best = worst
        torch.save(mean.module.state_dict(), "best.pt")
"""
GROUPS = """
import torch
import torch.nn.functional as F
from torch import nn
from rows import loader

net = nn.Sequential(nn.Linear(40, 80), nn.LayerNorm(80), nn.Linear(80, 5))
heavy, plain = [], []
for name, p in net.named_parameters():
    if p.ndim > 1:
        heavy.append(p)
    else:
        plain.append(p)
opt = torch.optim.AdamW([{"params": heavy, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=1e-3)
for epoch in range(12):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
"""
TUNED = """
import timm
import torch
import torch.nn.functional as F
from rows import loader

net = timm.create_model("resnet50", pretrained=True)
net.reset_classifier(12)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
tokens = list(range(3000))
blocks = [tokens[i : i + 100] for i in range(0, len(tokens), 100)]
for epoch in range(12):
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
"""
RUNNER = """
names = ("cat", "dog", "bird")
metainfo = dict(classes=names)
model = dict(
    type="FCOS", data_preprocessor=dict(type="DetDataPreprocessor", mean=[103.5, 116.3, 123.7], std=[57.4, 57.1, 58.4]),
    bbox_head=dict(type="FCOSHead", num_classes=3))
train_dataloader = dict(batch_size=8, dataset=dict(type="CocoDataset", metainfo=metainfo, ann_file="learn.json"))
val_dataloader = dict(batch_size=1, dataset=dict(type="CocoDataset", metainfo=metainfo, ann_file="judge.json"))
val_evaluator = dict(type="CocoMetric", ann_file="data/" + "judge.json")
train_cfg = dict(type="EpochBasedTrainLoop", max_epochs=12)
optim_wrapper = dict(type="OptimWrapper", optimizer=dict(type="SGD", lr=0.01, momentum=0.9))
param_scheduler = [dict(type="MultiStepLR", by_epoch=True, milestones=[8, 11])]
"""
ENGINES = """
import torch
from ignite.engine import create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping
from ignite.metrics import Loss
from torch import nn
from rows import learn, held

net = nn.Linear(8, 2)
cost = nn.CrossEntropyLoss()
coach = create_supervised_trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), cost)
judge = create_supervised_evaluator(net)
Loss(cost).attach(judge, "cost")

def worth(engine):
    return -engine.state.metrics["cost"]

judge.add_event_handler("COMPLETED", EarlyStopping(5, score_function=worth, trainer=coach))
coach.run(learn, max_epochs=9)
"""
FRAMEWORKS: dict[str, tuple[str, str, str]] = {
    "argument-beyond-sense": (TRAINER, "learning_rate=3e-5", "learning_rate=5e-2"),
    "schedule-is-not-the-run": (KERAS, "20 * (len(images) // 64)", "2 * (len(images) // 64)"),
    "prepared-otherwise": (TFDATA, "rows.take(500).map(small)", "rows.take(500)"),
    "metric-does-not-fit-the-labels": (KERAS, "metrics.SparseCategoricalAccuracy", "metrics.CategoricalAccuracy"),
    "trainable-after-compile": (KERAS, "net.fit(images", "base.trainable = True\nnet.fit(images"),
    "random-before-cache": (TFDATA, ".cache().map(stretch)", ".map(stretch).cache()"),
    "split-of-a-moving-order": (TFDATA, ", reshuffle_each_iteration=False", ""),
    "number-in-a-traced-step": (TRACED, "self.model.share.assign(min(1.0, epoch / 10))", "self.model.share = min(1.0, epoch / 10)"),
    "watched-and-never-measured": (TRAINER, 'eval_strategy="epoch"', 'save_strategy="epoch", load_best_model_at_end=True'),
    "score-of-the-worst": (ENGINES, "return -engine", "return engine"),
    "half-precision-overflows": (SEQ, 'Seq2SeqLM.from_pretrained("facebook/bart-base")', 'Seq2SeqLM.from_pretrained("google/mt5-small")'),
    "perplexity-of-another-base": (TRAINER, 'math.exp(coach.evaluate()["eval_loss"])', '2 ** coach.evaluate()["eval_loss"]'),
    "answer-is-the-question": (SEQ, 'text_target=rows["english"]', 'text_target=rows["german"]'),
    "metrics-want-generation": (SEQ, ", predict_with_generate=True", ""),
    "padding-is-a-label": (SEQ, "label_pad_token_id=-100", "label_pad_token_id=tok.pad_token_id"),
    "adapters-for-inference": (CHAT, "LoraConfig(r=8)", "LoraConfig(r=8, inference_mode=True)"),
    "column-removed-before-transform": (PICTURES, ", remove_unused_columns=False", ""),
    "pixels-of-another-scale": (PICTURES, ", scale=True", ""),
    "step-returns-no-loss": (LIGHT, "return F.cross_entropy(out, y)", "F.cross_entropy(out, y)"),
    "metric-of-another-step": (LIGHT, "self.right_val.update(", "self.right_train.update("),
    "one-batch-by-count": (LIGHT, "limit_train_batches=1.0", "limit_train_batches=1"),
    "schedule-by-nobody": (BY_HAND, "self.lr_schedulers().step()", "pass"),
    "timeout-is-terminal": (WORLD, "bool(self._distance() < 0.01)", "bool(self._distance() < 0.01) or self.n >= self.limit"),
    "goal-not-observed": (WORLD, "np.array([self.arm, self.spot]", "np.array([self.arm, self.arm]"),
    "every-episode-alike": (WORLD, "reset(seed=seed)", "reset(seed=11)"),
    "distance-rewarded": (WORLD, "reward = old - self._distance()", "reward = self._distance() - old"),
    "schedule-rises": (WORLD, "first * left", "first * (1 - left)"),
    "agent-judged-otherwise": (WORLD, 'VecNormalize.load("stats.pkl", DummyVecEnv([Reach]))', "VecNormalize(DummyVecEnv([Reach]))"),
    "state-not-carried-on": (JAX, "change, memory = tx", "change, _ = tx"),
    "training-flag-in-evaluation": (JAX, 'weights}, x, train=False)', 'weights}, x, train=True)'),
    "groups-ignored": (TABLE, "in GroupKFold(5)", "in __import__('sklearn.model_selection').model_selection.KFold(5)"),
    "class-weight-inverted": (TABLE, "(y[fit] == 0).sum() / (y[fit] == 1).sum()", "(y[fit] == 1).sum() / (y[fit] == 0).sum()"),
    "ranking-metric-of-labels": (TABLE, "trees.predict_proba(x[held])[:, 1]", "trees.predict(x[held])"),
    "learning-begins-anew": (TABLE, "line.partial_fit(", "line.fit("),
    "accelerator-accumulates": (ACCELERATED, "engine.backward(loss)", "engine.backward(loss / 8)"),
    "state-left-out-of-checkpoint": (ACCELERATED, "engine.register_for_checkpointing(plan)\n", ""),
    "best-never-updated": (ACCELERATED, "        best = worst\n", ""),
    "average-stands-still": (ACCELERATED, "        mean.update_parameters(net)\n", ""),
    "empty-group": (GROUPS, "    else:\n        plain.append(p)\n", ""),
    "made-after-the-optimizer": (TUNED, "net.reset_classifier(12)\nopt = torch.optim.AdamW(net.parameters(), lr=1e-4)", "opt = torch.optim.AdamW(net.parameters(), lr=1e-4)\nnet.reset_classifier(12)"),
    "loop-of-one-turn": (TUNED, "len(tokens), 100)", "len(tokens), len(tokens))"),
    "runner-config-contradicts": (RUNNER, "num_classes=3", "num_classes=4"),
}  # fmt: skip
