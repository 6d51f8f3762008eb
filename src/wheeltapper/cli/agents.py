"""`wheeltapper agents`: what a coding agent should know about this tool."""

from __future__ import annotations

import argparse
from importlib.resources import files

DESCRIPTION = """\
Prints a text for coding agents, under 800 words: when to call what, how to read the answers,
and never to state a cause without its evidence. Put it where your agent reads its skills.
"""
EXAMPLES = """\
examples:
  wheeltapper agents
  wheeltapper agents > AGENTS.wheeltapper.md
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "agents", help="what a coding agent should know about this tool", description=DESCRIPTION, epilog=EXAMPLES
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of the screen")


def run(args: argparse.Namespace) -> int:
    from wheeltapper.cli.output import write

    write((files("wheeltapper.mcp") / "agents.md").read_text(encoding="utf-8"), args.output)
    return 0
