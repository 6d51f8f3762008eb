# `just` alone: test + lint.
default: test lint

# The tests, or some of them: just test tests/report -k html
test *args:
    python -m pytest {{args}}

lint:
    ruff check .
    mypy

# Write docs/ again; `just docs --check` fails when a page is stale.
docs *args:
    python -m wheeltapper.cli.docs {{args}}

# Diagnose every labelled record (../shared/runs) and print hits, misses and false alarms per sign.
corpus *args:
    python scripts/corpus.py {{args}}

# Speed, memory and start-up, as ratios in one run.
bench *args:
    python -m benchmarks {{args}}

new-sign name:
    python scripts/new.py sign {{name}}

new-cause name:
    python scripts/new.py cause {{name}}

# What CI does, from a fresh environment.
ci:
    .ci/run
