"""The replay memory holds too little.

What it sees
------------
A replay memory that holds no more than a few batches, or from which only the newest transitions are taken.

Why it matters
--------------
Each update sees the last few steps only, all alike: the values chase the newest episode.

How it decides
--------------
The capacity of the memory (a bounded queue, a buffer class, the setting of a library) is a number below the size of a
few batches; or the batch is cut from its end.

When it is wrong
----------------
In tests and in toy tasks of a few steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "replay-too-small"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    drawn = [
        c
        for c in story.named("sample", "choice", "choices")
        if c.origin.startswith(("random.", "numpy.random", "builtins")) or c.args
    ]
    for call in drawn:
        memory = next((a for a in call.args if a.op == "list" and a.name == "deque"), None)
        size = number(memory.kwargs.get("maxlen")) if memory is not None else None
        batch = next((n for a in (*call.args[1:], *call.kwargs.values()) if (n := number(a)) is not None), None)
        if size is not None and memory is not None and call.loops and size < 4 * (batch or 1) and size < 1000:
            yield code.seen(
                ID,
                f"The replay memory holds {size:g} transitions and a batch takes {batch or 1:g}: it sees the newest steps only.",
                memory,
                memory.kwargs["maxlen"],
                call,
            )
            return
    for call in story.calls:
        size, batch = number(call.kwargs.get("buffer_size")), number(call.kwargs.get("batch_size"))
        if (
            size is not None
            and batch is not None
            and size < 4 * batch
            and call.name in ("DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC")
        ):
            yield code.seen(
                ID,
                f"The replay memory holds {size:g} transitions and a batch takes {batch:g}.",
                call.kwargs["buffer_size"],
                call,
            )
            return
    for call, loss in story.backwards:
        for cut in made_of(loss):
            if cut.op == "item" and cut.args[1].op == "slice" and _is_memory(cut.args[0]):
                first = number(cut.args[1].args[0])
                if first is not None and first < 0:
                    yield code.seen(
                        ID,
                        f"The batch is the newest {-first:g} transitions of the memory, not a sample of it.",
                        cut,
                        call,
                    )
                    return


def _is_memory(value: Val) -> bool:
    return (value.op == "list" and value.name == "deque") or (
        value.op == "call" and value.name == "list" and bool(value.args) and _is_memory(value.args[0])
    )
