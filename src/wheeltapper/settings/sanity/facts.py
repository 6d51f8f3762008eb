"""What is known of public data sets and models: classes, vocabularies, sample rates, names of their parts."""

from __future__ import annotations

import re

# How many classes a data set has; several where heads with and without background or attributes are usual.
CLASSES = {
    "mnist": (10,), "fashionmnist": (10,), "kmnist": (10,), "cifar10": (10,), "cifar100": (100, 20), "svhn": (10, 11), "stl10": (10,), "imagenet": (1000, 1001, 100, 200),
    "imagenet1k": (1000, 1001), "imagenet21k": (21841, 21843, 10450), "tinyimagenet": (200,), "imagenet100": (100,), "coco": (80, 81, 91, 90, 133, 171, 92), "voc": (20, 21), "pascalvoc": (20, 21),
    "ade20k": (150, 151, 847), "cityscapes": (19, 20, 34, 30), "camvid": (11, 12, 32), "mnli": (3,), "sst2": (2,), "qnli": (2,), "rte": (2,), "cola": (2,), "mrpc": (2,), "qqp": (2,), "stsb": (1,),
    "wnli": (2,), "agnews": (4,), "imdb": (2,), "dbpedia": (14,), "snli": (3,), "anli": (3,), "xnli": (3,), "food101": (101,), "flowers102": (102,), "caltech101": (101, 102), "caltech256": (256, 257),
    "ogbnproducts": (47,), "ogbnarxiv": (40,), "ogbnmag": (349,), "cora": (7,), "citeseer": (6,), "pubmed": (3,), "reddit": (41,), "ppi": (121,), "esc50": (50,), "urbansound8k": (10,), "audioset": (527,),
    "kinetics400": (400,), "k400": (400,), "kinetics600": (600,), "kinetics700": (700,), "ucf101": (101,), "hmdb51": (51,), "ssv2": (174,), "lvis": (1203, 1230), "objects365": (365,),
    "modelnet40": (40,), "modelnet10": (10,), "inat2018": (8142,), "inat2021": (10000,), "inat2017": (5089,), "places365": (365,),
    "conll2003": (9,), "trec": (6, 50), "20newsgroups": (20,), "goemotions": (28,), "emotion": (6,), "eurosat": (10,), "resisc45": (45,), "cub200": (200,), "stanfordcars": (196,),
    "dtd": (47,), "oxfordpets": (37,), "sun397": (397,), "chestxray14": (14, 15), "nih14": (14,), "ham10000": (7,), "celebahq": (2,), "speechcommands": (35, 12, 11, 30, 10), "gtsrb": (43,),
    "yelpreviewfull": (5,), "yelppolarity": (2,), "amazonpolarity": (2,), "boolq": (2,), "banking77": (77,), "clinc150": (150, 151), "massive": (60,), "swda": (42, 43), "voxceleb1": (1251,),
}  # fmt: skip
# Pieces that a tokenizer has; ids reach up to that, and the table of embeddings may be padded above.
VOCABULARIES = (
    (r"gpt-?2(?![\w]*(?:neox|j))|gpt2bpe|openwebtext", 50257), (r"bert-(?:base|large)-uncased|distilbert-base-uncased", 30522), (r"bert-(?:base|large)-cased", 28996),
    (r"bert-base-chinese", 21128), (r"bert-base-multilingual-cased", 119547), (r"xlm-?r|xlm-roberta", 250002), (r"(?<!xlm-)roberta-(?:base|large)", 50265),
    (r"llama-?3|meta-llama-3", 128256), (r"llama-?2|llama-7b|llama2|mistral-7b-v0\.1|mixtral-8x7b|tinyllama", 32000), (r"qwen-?2|qwen2\.5|qwen3", 151643),
    (r"gemma", 256000), (r"whisper", 51864), (r"clip_bpe|clip-vit|openai/clip", 49408), (r"gpt-neox|pythia", 50254), (r"t5-(?:small|base|large|3b|11b)|cc_all\.32000", 32100),
    (r"deberta-v3", 128000), (r"cl100k", 100256), (r"o200k", 199998), (r"phi-2", 50257),
)  # fmt: skip
# How many positions a model has learned.
POSITIONS = ((r"(?:^|/)opt-\d", 2048), (r"(?:^|/)(?:gpt2|distilgpt2)", 1024), (r"(?:^|/)(?:distil)?bert-(?:base|large)", 512), (r"(?:^|/)(?:distil)?roberta-(?:base|large)", 512), (r"electra-(?:base|small|large)", 512), (r"gpt-neo-", 2048), (r"albert-(?:base|large)", 512))
RATES = {"ljspeech": 22050, "ljs": 22050, "whisper": 16000, "wav2vec2": 16000, "wav2vec": 16000, "hubert": 16000, "wavlm": 16000, "libritts": 24000, "encodec": 24000}
# Names of the layers that adapters go to, by the architecture.
PARTS = {
    "llama": "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj lm_head embed_tokens qkv_proj gate_up_proj norm",
    "gpt2": "c_attn c_proj c_fc lm_head wte attn mlp",
    "neox": "query_key_value dense dense_h_to_4h dense_4h_to_h embed_in embed_out",
    "bert": "query key value dense classifier q_lin k_lin v_lin out_lin query_proj key_proj value_proj",
    "t5": "q k v o wi wo wi_0 wi_1 lm_head",
}  # fmt: skip
LLAMAS = r"llama|mistral|mixtral|qwen-?[1-9]?\.?5|qwen-?[23]|gemma|vicuna|zephyr|yi-|deepseek|internlm2|phi-3|smollm|olmo|solar|hermes"
ARCHITECTURES = ((LLAMAS, "llama"), (r"gpt-?2(?!\.)|dialogpt", "gpt2"), (r"neox|pythia|falcon|bloom|dolly|stablelm-base", "neox"), (r"bert", "bert"), (r"(?:^|/|-)(?:m?t5|flan)", "t5"))
# Which markers a chat of this model has.
TEMPLATES = {"qwen": "qwen", "llama3": "llama-?3", "llama2": "llama-?2", "mistral": "mistral|mixtral", "gemma": "gemma", "phi": "phi", "chatml": "", "deepseek": "deepseek", "baichuan": "baichuan", "chatglm": "glm", "yi": "yi-", "vicuna": "vicuna"}


def plain(text: str) -> str:
    """A name without its separators: "ogbn-products" and "OGBN_Products" alike."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def architecture_of(text: str) -> str | None:
    low = text.lower()
    return next((name for pattern, name in ARCHITECTURES if re.search(pattern, low)), None)


def vocabulary_of(text: str) -> int | None:
    """How many pieces a tokenizer of this name has; a number in its name tells, too ("spm_bpe_1024.model")."""
    low = text.lower()
    for pattern, size in VOCABULARIES:
        if re.search(pattern, low):
            return size
    told = re.findall(r"(?<![\d.])(\d{3,6})(k?)(?![\d])", low)
    sizes = [int(n) * (1000 if k else 1) for n, k in told if 200 <= int(n) * (1000 if k else 1) <= 600_000]
    return sizes[-1] if len(sizes) == 1 else None
