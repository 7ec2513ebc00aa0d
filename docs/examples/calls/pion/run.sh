#!/bin/sh
# run.sh SCENARIO [--out DIR] [options of tidegate shell]: a call of pion; run.sh --help says more
here=$(cd "$(dirname "$0")" && pwd)
[ -x "$here/peer" ] || { echo "pion's peer is not built: $here/install.sh builds it" >&2; exit 2; }
CALL_LADDER=$("${PYTHON:-python3}" "$here/ladder.py") || exit
export CALL_LADDER
exec "${PYTHON:-python3}" "$here/../session.py" "$here/peer" -- "$@"
