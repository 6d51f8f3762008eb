"""tqdm bars: `Epoch 12/200:  64%|██████▍   | 115/180 [01:56<01:05, 1.01s/it, loss=0.25]`."""

from __future__ import annotations

import re

from wheeltapper.reading._fields import field_of
from wheeltapper.reading._pairs import loose_pairs, place_of
from wheeltapper.reading._rows import Field, Row
from wheeltapper.reading._text import NUMBER

# The drawing between the bars may be in any encoding, so anything goes there.
BAR = re.compile(
    r"(?P<percent>\d{1,3})%\|(?P<drawing>[^|]{0,200})\|\s*(?P<done>[\d.,]+)(?P<k>[kKMG]?)/(?P<total>[\d.,]+)[kKMG]?"
    r"[^\[\]]{0,20}\[(?P<elapsed>[\d:?]+)<(?P<left>[^,\]]*)(?:,\s*(?P<rate>[^,\]]*))?(?:,\s*(?P<post>[^\]]*))?\]?"
)
_POST = re.compile(
    rf"(?P<name>[A-Za-z_][\w ./-]*?)\s*[=:]\s*(?P<value>{NUMBER})(?:/(?P<total>\d+))?"
    r"(?P<unit>%|GB|MB|G|M|ms|s)?(?=[,\s|\]]|$)"
)
_STEPS = ("step", "global_step", "iter", "iteration")


def bar_state(text: str) -> str:
    """The last bar on a line in words.

    >>> bar_state("Epoch 12/200:  64%|######    | 115/180 [01:56<01:05, 1.01s/it]")
    'Epoch 12/200: 64% 115/180'
    """
    state = ""
    for found in BAR.finditer(text):
        lead = text[: found.start()].rsplit("]", 1)[-1].strip()
        state = f"{lead} {found['percent']}% {found['done']}/{found['total']}".strip()
    return state


def bar_row(body: str, *, bare: bool = False) -> Row | None:
    """A bar as a row: where it stands and what it shows. `bare`: also bars that show no epoch and no value."""
    bars = list(BAR.finditer(body))
    if not bars:
        return None
    found = bars[-1]  # bars glued on one line: the last is the state that stayed
    before = body[: found.start()]
    glued = before.rfind("]")  # the bar before this one on the same line
    place = place_of(body[: found.start()], glued + 1 if "|" in before else 0)
    values = loose_pairs(body[: found.start()].rstrip(": "), glued + 1 if "|" in before else 0, place, spaced=False)
    step: list[Field] = []
    if found["post"]:
        for pair in _POST.finditer(body, found.start("post"), found.end("post")):
            if pair["name"] in _STEPS:
                step.append(field_of(pair, "value", role="step"))
                if pair["total"]:
                    step.append(field_of(pair, "total", role="total_steps"))
            else:
                values.append(field_of(pair, "value", pair["name"], unit=pair["unit"]))
    if not values and not step and found.end() < len(body):  # what was printed while the bar stood still: "...1.2s/it] loss 0.3"
        after = place_of(body, found.end())
        values = loose_pairs(body, found.end(), after)
        if values:
            return Row(tuple(sorted((*(after or place), *values), key=lambda f: f.start)))
    place = [f for f in place if f.role in ("epoch", "total_epochs") or not step]
    if not step and not found["k"]:
        if any(f.role == "epoch" for f in place):
            done = [field_of(found, "done", role="inner"), field_of(found, "total", role="per_epoch")]
        else:
            done = [field_of(found, "done", role="inner"), field_of(found, "total", role="bar_total")]
        place = [f for f in place if f.role not in ("step", "inner", "per_epoch", "total_steps")] + done
    if not values and not bare and not step:
        return None
    return Row(tuple(sorted((*place, *step, *values), key=lambda f: f.start)), anchor=bool(values or step))
