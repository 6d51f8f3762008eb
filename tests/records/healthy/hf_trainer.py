from dataclasses import dataclass, field
from typing import Optional

from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model_name_or_path: str = field(default="roberta-base")
    cache_dir: Optional[str] = field(default=None)
    dropout: float = field(default=0.1)


@dataclass
class DataArguments:
    dataset_name: str = field(default="ag_news")
    max_seq_length: int = field(default=128)
    pad_to_max_length: bool = field(default=True)


def main():
    parser = HfArgumentParser((ModelArguments, DataArguments, TrainingArguments))
    model_args, data_args, training_args = parser.parse_args_into_dataclasses()
    tokenizer = AutoTokenizer.from_pretrained(model_args.model_name_or_path, cache_dir=model_args.cache_dir)
    raw = load_dataset(data_args.dataset_name)

    def encode(examples):
        padding = "max_length" if data_args.pad_to_max_length else False
        return tokenizer(examples["text"], padding=padding, truncation=True, max_length=data_args.max_seq_length)

    data = raw.map(encode, batched=True)
    model = AutoModelForSequenceClassification.from_pretrained(
        model_args.model_name_or_path, num_labels=4, hidden_dropout_prob=model_args.dropout
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=data["train"], eval_dataset=data["test"])
    trainer.train(resume_from_checkpoint=training_args.resume_from_checkpoint)
    trainer.save_model()


if __name__ == "__main__":
    main()
