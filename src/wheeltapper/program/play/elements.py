"""What a loop gets: the elements of lists, loaders and datasets."""

from __future__ import annotations

import ast

from wheeltapper.program.play.scene import Scene
from wheeltapper.program.play.value import Val, const, phi

SAME_ELEMENTS = {
    "tqdm", "trange", "iter", "reversed", "sorted", "islice", "cycle", "chain", "list", "tuple", "progress_bar", "track", "shuffle",
    "set", "deque", "infinite", "repeat", "prefetch", "take", "skip", "cache", "select", "ReplayBuffer", "ModuleList",
}  # fmt: skip
SUBSETS = {"Subset", "random_split", "ConcatDataset", "ShuffleDataset", "select", "DatasetView"}


class Elements(Scene):
    def element(self, over: Val, node: ast.AST, depth: int = 0) -> Val:
        """One element of what is looped over: the same one for everybody who loops over it."""
        made = self._element(over, node, depth)
        if made.op in ("elem", "index") and over.op not in ("free", "lib", "const"):
            return over.fields.setdefault("@elem", made)
        return made

    def known_elements(self, over: Val) -> list[Val] | None:
        """Every element of what is looped over, where each of them is known."""
        if over.op in ("list", "tuple"):
            return over.items
        if (
            over.op == "call"
            and over.name == "items"
            and over.args
            and over.args[0].op == "dict"
            and not over.args[0].args
        ):
            return [
                Val("tuple", items=[const(k), v], node=over.node)
                for k, v in over.args[0].fields.items()
                if k[:1] not in "@["
            ]
        if over.op == "call" and over.name == "zip" and over.args:
            parts = [self.known_elements(a) for a in over.args]
            if all(parts) and len({len(p or ()) for p in parts}) == 1:
                return [
                    Val("tuple", items=list(one), node=over.node) for one in zip(*(p or () for p in parts), strict=True)
                ]
        return None

    def _element(self, over: Val, node: ast.AST, depth: int) -> Val:
        if depth > 8:
            return Val("elem", args=(over,), node=node)
        if over.op in ("list", "tuple") and over.items:
            return phi(over.items, node)
        if over.op in ("comp", "gen") and over.args:
            return over.args[0]
        if over.op == "phi":
            return phi([self.element(v, node, depth + 1) for v in over.args[:3]], node)
        if over.op == "obj":
            return self._of_object(over, node, depth)
        if over.op == "call":
            return self._of_call(over, node, depth)
        return Val("elem", args=(over,), node=node)

    def _of_object(self, over: Val, node: ast.AST, depth: int) -> Val:
        for name in ("__iter__", "__next__", "__getitem__"):
            method = self.program.method(over.name, name)
            if method is None:
                continue
            index = (Val("index", node=node),) if name == "__getitem__" else ()
            made = self.enter(method, index, {}, node, over)
            return self.element(made, node, depth + 1) if name == "__iter__" and made.op in ("gen", "call") else made
        return Val("elem", args=(over,), node=node)

    def _of_call(self, over: Val, node: ast.AST, depth: int) -> Val:
        args = over.args
        if over.name == "enumerate" and args:
            return Val(
                "tuple",
                items=[Val("index", args=args[:1], node=node), self.element(args[0], node, depth + 1)],
                node=node,
            )
        if over.name == "zip":
            return Val("tuple", items=[self.element(a, node, depth + 1) for a in args], node=node)
        if over.name in ("range", "arange", "count", "trange"):
            return Val("index", args=(over,), node=node)
        if over.name == "items" and args and args[0].op == "dict":
            return Val(
                "tuple",
                items=[Val("free", node=node), phi(args[0].fields.values() or [Val("free", node=node)], node)],
                node=node,
            )
        if over.name in ("values",) and args and args[0].op == "dict" and args[0].fields:
            return phi(args[0].fields.values(), node)
        if over.name in ("DataLoader", "StatefulDataLoader", "FastDataLoader") and (args or "dataset" in over.kwargs):
            return self._batch(over, node)
        if over.name == "Sequential" and args and over.origin.startswith("torch"):
            return phi(args, node)
        if over.name in SAME_ELEMENTS and args:
            return self.element(args[0], node, depth + 1)
        return Val("elem", args=(over,), node=node)

    def _batch(self, loader: Val, node: ast.AST) -> Val:
        if "batch" in loader.fields:
            return loader.fields["batch"]
        dataset = loader.arg("dataset", 0)
        assert dataset is not None
        record = self.record(dataset, node)
        collate = loader.arg("collate_fn")
        if collate is not None and collate.op in ("func", "bound", "obj"):
            made = self.apply(collate, (Val("comp", args=(record,), node=node),), {}, node)
        else:
            made = record
        loader.fields["batch"] = batched(made, loader)
        return loader.fields["batch"]

    def record(self, dataset: Val, node: ast.AST, depth: int = 0) -> Val:
        """One record of a dataset."""
        if depth > 6:
            return Val("elem", args=(dataset,), node=node)
        if dataset.op == "obj":
            return self._of_object(dataset, node, depth)
        if dataset.op == "call" and dataset.name == "TensorDataset":
            index = Val("index", node=node)
            return Val("tuple", items=[Val("item", args=(a, index), node=a.node) for a in dataset.args], node=node)
        if dataset.op == "call" and dataset.name in SUBSETS and dataset.args:
            return self.record(dataset.args[0], node, depth + 1)
        if dataset.op == "item" and dataset.args[0].op == "call" and dataset.args[0].name in SUBSETS:
            return self.record(dataset.args[0].args[0], node, depth + 1)
        if dataset.op in ("list", "tuple", "comp", "phi") or (dataset.op == "call" and dataset.name in ("zip", "list")):
            return self.element(dataset, node, depth + 1)
        return Val("elem", args=(dataset,), node=node)


def batched(record: Val, loader: Val) -> Val:
    """A record as a loader gives it: the same fields, each a batch of them."""
    if record.op == "tuple" and record.items is not None:
        return Val("tuple", items=[batched(i, loader) for i in record.items], node=record.node)
    if record.op == "dict":
        return Val(
            "dict", fields={k: batched(v, loader) for k, v in record.fields.items()}, node=record.node, data=loader
        )
    return Val("batch", args=(record,), node=record.node, data=loader)
