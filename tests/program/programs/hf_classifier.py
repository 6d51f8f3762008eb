import numpy as np
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, EarlyStoppingCallback, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("distilbert-base-uncased")
raw = load_dataset("imdb")
parts = raw["train"].train_test_split(test_size=0.1, seed=13)


def encode(batch):
    return tok(batch["text"], truncation=True, max_length=256)


train_ds = parts["train"].map(encode, batched=True)
val_ds = parts["test"].map(encode, batched=True)
model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=2)


def metrics(p):
    logits, labels = p
    return {"accuracy": (np.argmax(logits, axis=-1) == labels).mean()}


args = TrainingArguments(
    output_dir="out", learning_rate=2e-5, per_device_train_batch_size=16, per_device_eval_batch_size=64, num_train_epochs=3,
    weight_decay=0.01, warmup_ratio=0.06, eval_strategy="steps", eval_steps=500, save_steps=500, logging_steps=50,
    load_best_model_at_end=True, metric_for_best_model="accuracy", greater_is_better=True, seed=13)
trainer = Trainer(model=model, args=args, train_dataset=train_ds, eval_dataset=val_ds, compute_metrics=metrics,
                  data_collator=DataCollatorWithPadding(tok), callbacks=[EarlyStoppingCallback(early_stopping_patience=3)])
trainer.train()
