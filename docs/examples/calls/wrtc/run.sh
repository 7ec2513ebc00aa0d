#!/bin/sh
# run.sh SCENARIO [--out DIR] [options of tidegate shell]: a call of libwebrtc; run.sh --help says more
here=$(cd "$(dirname "$0")" && pwd)
[ -d "$here/node_modules" ] || { echo "libwebrtc is not installed here: run $here/install.sh first" >&2; exit 2; }
exec "${PYTHON:-python3}" "$here/../session.py" node "$here/peer.js" -- "$@"
