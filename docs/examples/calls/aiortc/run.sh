#!/bin/sh
# run.sh SCENARIO [--out DIR] [options of tidegate shell]: a call of aiortc; run.sh --help says more
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/.venv/bin/python" ] || { echo "aiortc is not installed here: run $here/install.sh first" >&2; exit 2; }
exec "${PYTHON:-python3}" "$here/../session.py" "$here/.venv/bin/python" "$here/peer.py" -- "$@"
