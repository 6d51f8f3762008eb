import torch
import torch.nn.functional as F
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

TEMPERATURE, ALPHA = 2.0, 0.5


class DistilTrainer(Trainer):
    def __init__(self, *args, teacher=None, **kw):
        super().__init__(*args, **kw)
        self.teacher = teacher
        self.teacher.eval()

    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        out = model(**inputs)
        with torch.no_grad():
            ref = self.teacher(**inputs)
        soft = F.kl_div(F.log_softmax(out.logits / TEMPERATURE, -1), F.softmax(ref.logits / TEMPERATURE, -1), reduction="batchmean") * TEMPERATURE ** 2
        loss = ALPHA * out.loss + (1 - ALPHA) * soft
        return (loss, out) if return_outputs else loss


tok = AutoTokenizer.from_pretrained("bert-base-uncased")
ds = load_dataset("glue", "sst2").map(lambda b: tok(b["sentence"], truncation=True), batched=True)
student = AutoModelForSequenceClassification.from_pretrained("distilbert-base-uncased")
teacher = AutoModelForSequenceClassification.from_pretrained("textattack/bert-base-uncased-SST-2")
args = TrainingArguments("out", learning_rate=3e-5, num_train_epochs=3, per_device_train_batch_size=32, eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, metric_for_best_model="eval_loss", greater_is_better=False)
trainer = DistilTrainer(model=student, args=args, teacher=teacher, train_dataset=ds["train"], eval_dataset=ds["validation"], tokenizer=tok)
trainer.train()
