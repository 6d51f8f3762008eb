"""A small BERT that tells which of eight kinds of sentence it reads, with the Hugging Face Trainer."""
import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(0)
CLASSES, LENGTH, WORDS = 8, 16, 200


def sentences(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=n)
    words = rng.integers(CLASSES * 10, WORDS, size=(n, LENGTH))
    telling = rng.random((n, LENGTH)) < 0.2
    own = labels[:, None] * 10 + rng.integers(10, size=(n, LENGTH))
    words = np.where(telling, own, words)
    return [{"input_ids": w.tolist(), "attention_mask": [1] * LENGTH, "labels": int(y)} for w, y in zip(words, labels)]


train_set, eval_set = sentences(2000, 1), sentences(500, 2)
config = BertConfig(
    vocab_size=WORDS, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, max_position_embeddings=32, num_labels=CLASSES
)
model = BertForSequenceClassification(config)


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


args = TrainingArguments(
    output_dir="out",
    learning_rate=5e-4,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    num_train_epochs=6,
    weight_decay=0.01,
    warmup_steps=20,
    logging_steps=10,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=2,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
    seed=0,
)
trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=eval_set, compute_metrics=compute_metrics)
trainer.train()
trainer.save_state()
