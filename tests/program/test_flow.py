"""Where an option's value goes: each way of passing it on is followed, and what is not understood counts as use."""

from __future__ import annotations

import pytest
from reading_text import code_of, ids

HEAD = """
import argparse, json, logging, os
import torch
from torch import nn
logger = logging.getLogger("x")
p = argparse.ArgumentParser()
p.add_argument("--clip", type=float, default=1.0)
p.add_argument("--lr", type=float, default=0.1)
args = p.parse_args()
"""
TAIL = """
net = nn.Linear(1, 1)
opt = torch.optim.SGD(net.parameters(), lr=args.lr)
for x in range(10):
    opt.zero_grad()
    net(torch.ones(1)).backward()
    opt.step()
"""

# Ways in which --clip is shown, kept or named, and acts on nothing.
DEAD = {
    "never read": "",
    "printed": "print(args.clip)",
    "logged in a format": "logger.info('clip %s', args.clip)",
    "logged in an f-string": "logger.info(f'clip {args.clip:.2f}')",
    "kept in a dict": "config = {'clip': args.clip, 'lr': args.lr}\nprint(config)",
    "kept under another name": "config = {'max_norm': args.clip}\njson.dump(config, open('c.json', 'w'))",
    "assigned to a key": "config = {}\nconfig['clip'] = args.clip\nlogger.info(str(config))",
    "all of them dumped": "with open('args.json', 'w') as f:\n    json.dump(vars(args), f)",
    "all of them printed in a loop": "for k, v in vars(args).items():\n    print(k, v)",
    "names the run": "run = f'run_clip{args.clip}'\nos.makedirs(os.path.join('out', run), exist_ok=True)",
    "given to a function that ignores it": "def setup(clip):\n    return 3\nsetup(args.clip)",
    "stored on an object that nobody reads": "class T:\n    def __init__(self, clip):\n        self.clip = clip\nT(args.clip)",
    "decides a message": "if args.clip > 0:\n    print('clipping is on')",
    "saved in a checkpoint": "torch.save({'config': vars(args)}, 'x.pt')",
}

# Ways in which it reaches something that acts, or something we do not understand.
ALIVE = {
    "clips": "CLIP = args.clip\ndef step(): nn.utils.clip_grad_norm_([], CLIP)",
    "through a key": "config = {}\nconfig['clip'] = args.clip\nnn.utils.clip_grad_norm_([], config['clip'])",
    "through get": "config = {'clip': args.clip}\nnn.utils.clip_grad_norm_([], config.get('clip', 1))",
    "through self": "class T:\n    def __init__(self, a):\n        self.clip = a.clip\n    def go(self):\n        nn.utils.clip_grad_norm_([], self.clip)\nT(args).go()",
    "through another name": "class T:\n    def __init__(self, norm):\n        self.norm = norm\n    def go(self):\n        nn.utils.clip_grad_norm_([], self.norm)\nT(args.clip).go()",
    "unpacked into a function": "def go(lr, clip):\n    nn.utils.clip_grad_norm_([], clip)\ngo(**vars(args))",
    "taken by kwargs": "def go(**kw):\n    nn.utils.clip_grad_norm_([], kw['clip'])\ngo(**vars(args))",
    "getattr by name": "nn.utils.clip_grad_norm_([], getattr(args, 'clip'))",
    "getattr by any name": "for n in ('lr', 'clip'):\n    nn.utils.clip_grad_norm_([], getattr(args, n))",
    "given whole to the unknown": "from lib import train\ntrain(args)",
    "unpacked into the unknown": "from lib import train\ntrain(**vars(args))",
    "environment": "os.environ['CLIP'] = str(args.clip)",
    "a subprocess": "import subprocess\nsubprocess.run(['x', f'--clip={args.clip}'])",
    "a global setting": "torch.backends.clip = args.clip",
    "an optimizer's group": "opt0 = torch.optim.SGD([torch.ones(1)], 1)\nopt0.param_groups[0]['clip'] = args.clip",
    "a condition that acts": "if args.clip > 0:\n    torch.set_num_threads(1)",
    "a flag made of it": "use = args.clip > 0\nif use:\n    torch.set_num_threads(1)",
    "a namespace built again": "from types import SimpleNamespace\ncfg = SimpleNamespace(**vars(args))\nnn.utils.clip_grad_norm_([], cfg.clip)",
    "a method of a class": "class T:\n    @property\n    def norm(self):\n        return args.clip\nnn.utils.clip_grad_norm_([], T().norm)",
    "a spawned process": "import torch.multiprocessing as mp\ndef work(rank, a):\n    nn.utils.clip_grad_norm_([], a.clip)\nmp.spawn(work, args=(args,), nprocs=2)",
    "a partial": "from functools import partial\ndef go(clip):\n    nn.utils.clip_grad_norm_([], clip)\nf = partial(go, args.clip)",
    "setattr over all": "class T: pass\nt = T()\nfor k, v in vars(args).items():\n    setattr(t, k, v)\nnn.utils.clip_grad_norm_([], t.clip)",
    "update of dict": "class T:\n    def __init__(self, **kw):\n        self.__dict__.update(kw)\nt = T(**vars(args))\nnn.utils.clip_grad_norm_([], t.clip)",
    "a list": "values = []\nvalues.append(args.clip)\nnn.utils.clip_grad_norm_([], values[0])",
    "a tuple unpacked": "a, b = args.lr, args.clip\nnn.utils.clip_grad_norm_([], b)",
    "a conditional expression": "norm = args.clip if args.lr else 0\nnn.utils.clip_grad_norm_([], norm)",
    "a walrus": "if (c := args.clip):\n    nn.utils.clip_grad_norm_([], c)",
    "returned and used": "def norm():\n    return args.clip * 2\nnn.utils.clip_grad_norm_([], norm())",
    "an assertion": "assert args.clip > 0",
    "a box in a box": "from lib import make\nclass T:\n    def __init__(self, opt_config):\n        make(**opt_config)\nopt_config = {'clip': args.clip}\noptions = dict(opt_config=opt_config)\nT(**options)",
    "read in a lambda": "def norm(x):\n    return nn.utils.clip_grad_norm_([], x)\nf = lambda: norm(args.clip)\nf()",
    "an item of a data set": "class D(torch.utils.data.Dataset):\n    def __init__(self, c):\n        self.c = c\n    def __getitem__(self, i):\n        return {'x': self.c + i}\nd = D(args.clip)",
    "eval of text": "eval(f'torch.set_num_threads({args.clip})')",
}  # fmt: skip


def source(body: str) -> str:
    return HEAD + body + "\n" + TAIL


def dead_options(body: str) -> set[str]:
    code = code_of(source(body))
    return {u.option.name for u in code.usages if not u.acts}


@pytest.mark.parametrize("how", DEAD)
def test_a_dead_option_is_seen(how: str) -> None:
    assert dead_options(DEAD[how]) == {"clip"}


@pytest.mark.parametrize("how", ALIVE)
def test_a_used_option_is_left_alone(how: str) -> None:
    assert dead_options(ALIVE[how]) == set()


def test_a_log_interval_only_decides_what_is_printed_and_is_used() -> None:
    text = source("for i in range(9):\n    if i % args.log_interval == 0:\n        print(i)").replace(
        "--clip", "--log-interval"
    )
    assert ids(text) == set()


def test_switching_a_progress_bar_off_is_a_use() -> None:
    text = source("from tqdm import tqdm\nfor i in tqdm(range(9), disable=args.quiet):\n    print(i)").replace(
        "--clip", "--quiet"
    )
    assert ids(text) == set()


def test_an_option_that_says_it_does_nothing_is_not_reported() -> None:
    assert ids(source("").replace("default=1.0)", 'default=1.0, help="deprecated, ignored")')) == set()


def test_options_of_another_program_in_the_folder_do_not_help() -> None:
    other = "import torch\nfrom torch import nn\n\ndef unused(args):\n    nn.utils.clip_grad_norm_([], args.clip)\n"
    main = (
        source("import other\n").replace("p = argparse", "if True:\n  pass\np = argparse")
        + "\nif __name__ == '__main__':\n    print(1)\n"
    )
    assert ids(main, other_py=other) == {"option-never-used"}


def test_a_function_called_only_from_a_lambda_is_reachable() -> None:
    text = """
        import argparse, torch
        def encode(examples, column):
            return examples[column]
        def main():
            p = argparse.ArgumentParser()
            p.add_argument("--column", default="text")
            args = p.parse_args()
            data = torch.load("x").map(lambda e: encode(e, args.column))
            opt = torch.optim.SGD([torch.ones(1)], lr=1.0)
            for i in data:
                opt.zero_grad()
                torch.ones(1).backward()
                opt.step()
        if __name__ == "__main__":
            main()
    """
    assert ids(text) == set()


def test_the_value_crosses_files() -> None:
    main = """
        import argparse
        from engine import Engine
        def main():
            p = argparse.ArgumentParser()
            p.add_argument("--clip", type=float, default=1.0)
            p.add_argument("--wd", type=float, default=1.0)
            Engine(p.parse_args()).fit()
        if __name__ == "__main__":
            main()
    """
    engine = """
        import torch
        class Engine:
            def __init__(self, cfg):
                self.cfg = cfg
                self.net = torch.nn.Linear(1, 1)
                self.opt = torch.optim.SGD(self.net.parameters(), lr=1.0)
            def fit(self):
                for i in range(9):
                    self.opt.zero_grad()
                    self.net(torch.ones(1)).backward()
                    torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.cfg.clip)
                    self.opt.step()
    """
    code = code_of(main, engine_py=engine)
    assert {u.option.name for u in code.usages if not u.acts} == {"wd"}
