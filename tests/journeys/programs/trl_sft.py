"""Supervised fine-tuning of a small GPT-2 with TRL."""
import random

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed
from trl import SFTConfig, SFTTrainer

set_seed(0)
ANIMALS = ["cat", "dog", "owl", "fox", "hen", "bee", "cow", "ant"]
SOUNDS = ["purrs", "barks", "hoots", "yelps", "clucks", "hums", "moos", "waits"]
PLACES = ["barn", "tree", "lake", "road", "hill", "wood"]
WORDS = ["<pad>", "<eos>", "the", "in", "and", "then", "again", *ANIMALS, *SOUNDS, *PLACES]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<pad>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def stories(n, seed):
    rng = random.Random(seed)
    lines = []
    for _ in range(n):
        parts = []
        for _ in range(4):
            kind = rng.randrange(8)
            parts.append(f"the {ANIMALS[kind]} {SOUNDS[kind]} in the {PLACES[kind % 6]}")
        lines.append(" and then ".join(parts))
    return Dataset.from_dict({"text": lines})


model = GPT2LMHeadModel(
    GPT2Config(vocab_size=len(WORDS), n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1, pad_token_id=0)
)
args = SFTConfig(
    output_dir="sft",
    learning_rate=1e-3,
    per_device_train_batch_size=16,
    num_train_epochs=5,
    warmup_steps=10,
    logging_steps=5,
    eval_strategy="epoch",
    save_strategy="epoch",
    save_total_limit=1,
    max_length=64,
    use_cpu=True,
    bf16=False,
    report_to="none",
    disable_tqdm=True,
    gradient_checkpointing=False,
)
trainer = SFTTrainer(model=model, args=args, train_dataset=stories(800, 1), eval_dataset=stories(200, 2), processing_class=tokenizer)
trainer.train()
trainer.save_state()
