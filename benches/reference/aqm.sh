#!/bin/sh
# TCP through CoDel, FQ-CoDel and PIE in ns-3.37, as aqm_ns3.csv; docs/queues.md has the table.
#   apt-get install libns3-dev g++
set -eu
cd "$(dirname "$0")"
[ -e /usr/include/ns3/core-module.h ] || { echo "aqm.sh: ns-3 is not installed (Debian: libns3-dev)" >&2; exit 1; }
mkdir -p ../../.cache/bench
program=$(cd ../../.cache/bench && pwd)/aqm_ns3
g++ -O2 -DNDEBUG -std=c++17 aqm_ns3.cc -o "$program" -lns3-core -lns3-network -lns3-internet \
    -lns3-point-to-point -lns3-applications -lns3-stats -lns3-traffic-control
{
    echo "discipline,algorithm,flows,seed,goodput_mbps,waited_ms,dropped,gone"
    for discipline in codel fq-codel pie; do
        for variant in TcpNewReno TcpCubic; do
            for flows in 1 4 16; do
                for seed in 1 2 3 4 5; do
                    echo discipline=$discipline variant=$variant flows=$flows seed=$seed
                done
            done
        done
    done | xargs -P "${JOBS:-2}" -L 1 "$program" | sort -t, -k1,1 -k2,2r -k3,3n -k4,4n
} > aqm_ns3.csv
