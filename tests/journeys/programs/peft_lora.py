"""LoRA on a small GPT-2 that first learned one language and then another, with PEFT and the Trainer."""
import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(0)
WORDS, LENGTH = 64, 32


def language(seed):
    rng = np.random.default_rng(seed)
    return rng.permuted(np.tile(np.arange(WORDS), (3, 1)), axis=1)


def texts(table, n, seed):
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, LENGTH), dtype=int)
    rows[:, 0] = rng.integers(WORDS, size=n)
    for i in range(1, LENGTH):
        rows[:, i] = table[rng.choice(3, size=n, p=[0.8, 0.15, 0.05]), rows[:, i - 1]]
    return [{"input_ids": r.tolist(), "labels": r.tolist()} for r in rows]


model = GPT2LMHeadModel(GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0))
adapter = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["c_attn", "c_fc", "c_proj"], modules_to_save=["wte"], task_type="CAUSAL_LM")
model = get_peft_model(model, adapter)
train_set, eval_set = texts(language(5), 1200, 1), texts(language(5), 300, 2)

args = TrainingArguments(
    output_dir="lora-out",
    learning_rate=3e-3,
    per_device_train_batch_size=32,
    num_train_epochs=6,
    lr_scheduler_type="cosine",
    warmup_steps=10,
    weight_decay=0.0,
    logging_steps=5,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=1,
    use_cpu=True,
    report_to="none",
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=eval_set)
trainer.train()
trainer.save_state()
