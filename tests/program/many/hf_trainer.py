import numpy as np
from datasets import load_dataset
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainingArguments, EarlyStoppingCallback)

tok = AutoTokenizer.from_pretrained("distilbert-base-uncased")
ds = load_dataset("imdb")
split = ds["train"].train_test_split(test_size=0.1, seed=42)

def encode(batch):
    return tok(batch["text"], truncation=True, max_length=256)

train_ds = split["train"].map(encode, batched=True)
val_ds = split["test"].map(encode, batched=True)
model = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased", num_labels=2)

def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=-1)
    return {"accuracy": float((preds == p.label_ids).mean())}

args = TrainingArguments(
    output_dir="out", learning_rate=2e-5, per_device_train_batch_size=16, per_device_eval_batch_size=32,
    num_train_epochs=3, weight_decay=0.01, eval_strategy="epoch", save_strategy="epoch", logging_steps=50,
    warmup_ratio=0.06, load_best_model_at_end=True, metric_for_best_model="accuracy", greater_is_better=True, seed=42,
)
trainer = Trainer(model=model, args=args, train_dataset=train_ds, eval_dataset=val_ds, data_collator=DataCollatorWithPadding(tok), compute_metrics=compute_metrics, callbacks=[EarlyStoppingCallback(2)])
trainer.train()
print(trainer.evaluate())
