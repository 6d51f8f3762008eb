from datasets import load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer

base = "Qwen/Qwen2-0.5B-Instruct"
model = AutoModelForCausalLM.from_pretrained(base)
ref_model = AutoModelForCausalLM.from_pretrained(base)
tok = AutoTokenizer.from_pretrained(base)
raw = load_dataset("json", data_files="pairs.jsonl")["train"]


def to_pair(row):
    return {"prompt": row["question"], "chosen": row["response_good"], "rejected": row["response_bad"]}


data = raw.map(to_pair).train_test_split(test_size=0.05, seed=1)
config = DPOConfig(output_dir="dpo", beta=0.1, learning_rate=5e-7, per_device_train_batch_size=4, num_train_epochs=1, warmup_ratio=0.1, logging_steps=10)
trainer = DPOTrainer(model=model, ref_model=ref_model, args=config, train_dataset=data["train"], eval_dataset=data["test"], processing_class=tok)
trainer.train()
