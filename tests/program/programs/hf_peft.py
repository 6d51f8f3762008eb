from datasets import load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, Trainer, TrainingArguments

tok = AutoTokenizer.from_pretrained("mistralai/Mistral-7B-v0.1")
tok.pad_token = tok.eos_token
model = AutoModelForCausalLM.from_pretrained("mistralai/Mistral-7B-v0.1", torch_dtype="bfloat16")
lora = LoraConfig(r=16, lora_alpha=32, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
model = get_peft_model(model, lora)
model.print_trainable_parameters()
data = load_dataset("json", data_files={"train": "train.jsonl", "val": "val.jsonl"})
data = data.map(lambda ex: tok(ex["text"], truncation=True, max_length=512), remove_columns=["text"])
args = TrainingArguments(output_dir="lora-out", learning_rate=1e-4, per_device_train_batch_size=4, gradient_accumulation_steps=8,
                         max_steps=1000, warmup_steps=50, lr_scheduler_type="cosine", bf16=True, logging_steps=10, eval_strategy="steps", eval_steps=100)
Trainer(model=model, args=args, train_dataset=data["train"], eval_dataset=data["val"],
        data_collator=DataCollatorForLanguageModeling(tok, mlm=False)).train()
