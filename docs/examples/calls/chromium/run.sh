#!/bin/sh
# run.sh SCENARIO [--out DIR] [options of tidegate shell]: a call of two Chromiums; run.sh --help says more
here=$(cd "$(dirname "$0")" && pwd)
exec "${PYTHON:-python3}" "$here/../session.py" python3 "$here/peer.py" -- "$@"
