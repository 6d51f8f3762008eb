import torch
from datasets import load_dataset
from peft import LoraConfig, get_peft_model, TaskType
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, Trainer, TrainingArguments

NAME = "EleutherAI/pythia-160m"
tok = AutoTokenizer.from_pretrained(NAME)
tok.pad_token = tok.eos_token
model = AutoModelForCausalLM.from_pretrained(NAME)
model = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=8, lora_alpha=16, lora_dropout=0.05, target_modules=["query_key_value"]))
model.print_trainable_parameters()

def build(example):
    prompt = tok(f"### Q: {example['question']}\n### A: ", add_special_tokens=False)["input_ids"]
    answer = tok(example["answer"] + tok.eos_token, add_special_tokens=False)["input_ids"]
    ids = (prompt + answer)[:512]
    labels = ([-100] * len(prompt) + answer)[:512]
    return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels}

data = load_dataset("json", data_files="qa.jsonl")["train"].train_test_split(test_size=0.05, seed=1)
train = data["train"].map(build, remove_columns=data["train"].column_names)
heldout = data["test"].map(build, remove_columns=data["test"].column_names)
args = TrainingArguments(output_dir="lora", per_device_train_batch_size=8, gradient_accumulation_steps=4, learning_rate=2e-4, num_train_epochs=2, lr_scheduler_type="cosine", warmup_steps=50, logging_steps=10, eval_strategy="steps", eval_steps=100, bf16=True)
Trainer(model=model, args=args, train_dataset=train, eval_dataset=heldout, data_collator=DataCollatorForSeq2Seq(tok, label_pad_token_id=-100)).train()
