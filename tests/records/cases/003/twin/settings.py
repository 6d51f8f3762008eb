"""A YAML file as an object with attributes."""

from dataclasses import dataclass

import yaml


@dataclass
class Config:
    dictionary: dict | None = None
    yamlfile: str | None = None

    def __post_init__(self):
        if self.dictionary is None and self.yamlfile is not None:
            with open(self.yamlfile) as f:
                self.dictionary = yaml.safe_load(f)
        if self.dictionary is None:
            self.dictionary = {}
        for key, value in self.dictionary.items():
            if isinstance(value, dict):
                value = Config(dictionary=value)
            setattr(self, key, value)

    def __getitem__(self, key):
        return getattr(self, key)


def safe_getattr(obj, path, default=None):
    for attr in path.split("."):
        if not hasattr(obj, attr):
            return default
        obj = getattr(obj, attr)
    return obj
