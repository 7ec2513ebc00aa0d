#!/bin/sh
# Measure the TCP reference again: ns-2, then ns-3 where it is installed. Arguments go to collect.py.
#   apt-get install ns2 libns3-dev g++
set -eu
cd "$(dirname "$0")"
command -v ns > /dev/null || { echo "run.sh: ns-2 is not installed (Debian: ns2)" >&2; exit 1; }
python3 collect.py "$@"

if ! [ -e /usr/include/ns3/core-module.h ]; then
    echo "run.sh: ns-3 is not installed (Debian: libns3-dev); its rows stay as they are" >&2
    exit 0
fi
mkdir -p ../../.cache/bench
program=$(cd ../../.cache/bench && pwd)/tcp_ns3
g++ -O2 -DNDEBUG -std=c++17 tcp_ns3.cc -o "$program" -lns3-core -lns3-network -lns3-internet \
    -lns3-point-to-point -lns3-applications -lns3-stats -lns3-traffic-control
python3 collect.py --ns3 "$program" "$@"
