import argparse

import deepspeed
import torch

from llm import Transformer, token_batches


def add_argument():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-4)
    return deepspeed.add_config_arguments(parser).parse_args()


def main():
    args = add_argument()
    ds_config = {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": args.lr}},
        "bf16": {"enabled": True},
    }
    model = Transformer()
    engine, _, _, _ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters(), config=ds_config)
    for step, (x, y) in enumerate(token_batches(0)):
        loss = engine(x, y)
        engine.backward(loss)
        engine.step()
        if step >= args.steps:
            break
    torch.save(engine.module.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
