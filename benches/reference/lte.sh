#!/bin/sh
# Give ns-3's LTE module the cells of studies/lte_calibration.py, and write what its users get to lte_ns3.csv.
# Arguments: seeds (default 1). Needs libns3-dev, g++ and tidegate; some minutes a seed and case.
set -eu
cd "$(dirname "$0")"
[ -e /usr/include/ns3/lte-module.h ] || { echo "lte.sh: ns-3 is not installed (Debian: libns3-dev)" >&2; exit 1; }
mkdir -p ../../.cache/bench
cache=$(cd ../../.cache/bench && pwd)
g++ -O2 -DNDEBUG -std=c++17 lte_ns3.cc -o "$cache/lte_ns3" -lns3-core -lns3-network -lns3-mobility -lns3-lte \
    -lns3-propagation -lns3-spectrum -lns3-antenna -lns3-stats -lns3-internet
python3 lte_ns3.py "$cache" "$@"
