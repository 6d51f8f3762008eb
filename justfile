slow_folders := "--ignore tests/trial --ignore tests/fuzz --ignore tests/remedy --ignore tests/report --ignore tests/lab --ignore tests/guard --ignore tests/watch --ignore tests/settings/test_config_properties.py --ignore tests/settings/test_config_edit_properties.py --ignore tests/settings/test_config_write.py --ignore tests/reading/test_text_fuzz.py --ignore tests/reading/test_hostile_checkpoints.py"

# `just` alone: test + lint.
default: test lint

# The tests, or some of them: just test tests/report -k html
test *args:
    python -m pytest {{args}}

# Under a minute on two cores: everything but what is slow by its nature (trials, fuzzing, properties, whole pages).
quick *args:
    python -m pytest -n 2 -m "not slow" {{slow_folders}} {{args}}

# Ten minutes of damaged records over every reader, parser, check and command.
fuzz seconds="600":
    python tests/fuzz/campaign.py --seconds {{seconds}}

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

new-observation name:
    python scripts/new.py observation {{name}}

new-sign name:
    python scripts/new.py sign {{name}}

new-cause name:
    python scripts/new.py cause {{name}}

# What CI does, from a fresh environment.
ci:
    .ci/run

# Trainings with the real libraries, healthy and faulty: show, check, diagnose, fix, run the fixed, follow up. Some: just journeys keras_fit
journeys *args:
    python tests/journeys/all.py {{args}}
