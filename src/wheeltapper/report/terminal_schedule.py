"""The planned learning rate drawn in the terminal, with the logged one over it."""

from __future__ import annotations

import numpy as np
from rich.console import Console, RenderableType
from rich.text import Text

from wheeltapper.finding import Unknown
from wheeltapper.judge.schedule import Schedule
from wheeltapper.report.spark import spark
from wheeltapper.report.terminal import heading_rule, listed, put
from wheeltapper.report.text import clean, num
from wheeltapper.report.textplot import plot
from wheeltapper.simulate.lr_shape import shape_of_lr
from wheeltapper.simulate.plan import Plan, PlanEvent

WORDS = {
    "matches": ("✓", "green"),
    "cannot tell": ("?", "yellow"),
}


def print_schedule(schedule: Schedule, out: Console) -> None:
    parts: list[RenderableType] = [Text(clean(schedule.name, 120), style="bold")]
    plan = schedule.plan
    if isinstance(plan, Unknown):
        parts.append(Text(f"The plan cannot be worked out: {clean(plan.why)}", style="yellow"))
        if plan.needs:
            parts.append(Text(f"needed: {', '.join(clean(n) for n in plan.needs)}", style="dim"))
        if schedule.logged is not None:
            series = schedule.logged
            parts += [heading_rule("Logged learning rate"), *_lines(plot(series.at, series.values, width=out.width))]
            parts.append(Text(f"its shape, by {series.clock}: {shape_of_lr(series.at, series.values)}"))
    else:
        parts += _plan(plan, schedule, out.width)
    put(out, *parts)


def _plan(plan: Plan, schedule: Schedule, width: int) -> list[RenderableType]:
    total = f", laid out for {num(plan.total)} {plan.unit}" if plan.total is not None else ""
    parts: list[RenderableType] = [
        Text(f"{clean(plan.name, 60)}{total}; peak {num(plan.peak)}, ends at {num(float(plan.lr()[-1]))}"),
        heading_rule(f"Planned learning rate, by {plan.unit}"),
    ]
    over = None
    if schedule.logged is not None and schedule.logged_at is not None:
        over = (schedule.logged_at, schedule.logged.values)
    ticks = np.arange(plan.n + 1, dtype=np.float64)
    parts += _lines(plot(ticks, plan.lr(), width=width, over=over))
    if over is not None:
        parts.append(Text("dots: planned   o: logged", style="dim"))
    if plan.groups > 1:
        parts.append(Text(f"{plan.groups} parameter groups; the first is drawn", style="dim"))
    if plan.momentum is not None:
        momentum = plan.momentum[0]
        ends = f"{num(float(momentum[0]))} → {num(float(momentum[-1]))}, lowest {num(float(np.nanmin(momentum)))}"
        parts += [heading_rule("Momentum, driven by the schedule"), Text(f"{spark(momentum, 40)}  {ends}")]
    events = [f"{plan.unit.rstrip('s')} {num(e.at)}: {_without_place(e)}" for e in plan.events]
    if events:
        parts += [heading_rule("What happens when"), listed("•", events[:20])]
    if schedule.match is not None:
        mark, style = WORDS.get(schedule.match.verdict, ("✗", "red"))
        head = f"{mark} {schedule.match.verdict}: {clean(schedule.match.why)}"
        parts += [heading_rule("Planned against logged"), Text(head, style=style)]
        if schedule.match.factor_names:
            parts.append(Text(f"that factor is the {', '.join(schedule.match.factor_names)}"))
    elif schedule.logged is None:
        parts.append(Text("\nNo logged learning rate to compare with; give a run as the second path.", style="dim"))
    if plan.notes:
        parts.append(listed("•", [clean(note) for note in plan.notes]))
    return parts


def _without_place(event: PlanEvent) -> str:
    """Its text without the position, which stands in front of it."""
    place = f"{event.at:g}"
    return clean(event.text).removesuffix(f" at {place}").removesuffix(f" from {place}")


def _lines(lines: list[str]) -> list[RenderableType]:
    return [Text("\n".join(lines), style="cyan", no_wrap=True)]
