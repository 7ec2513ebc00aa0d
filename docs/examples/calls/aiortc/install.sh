#!/bin/sh
# aiortc into a virtual environment of its own here, in the versions of requirements.txt
cd "$(dirname "$0")" && "${PYTHON:-python3}" -m venv .venv && exec .venv/bin/pip install --disable-pip-version-check --quiet -r requirements.txt
