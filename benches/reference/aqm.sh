#!/bin/sh
# TCP through CoDel, FQ-CoDel and PIE in ns-3.37, as aqm_ns3.csv, in step and with jitter, as aqm_phase_ns3.csv, and
# DCTCP over a step, as dctcp_ns3.csv; docs/queues.md and docs/tcp.md have the tables.
#   apt-get install libns3-dev g++
set -eu
cd "$(dirname "$0")"
[ -e /usr/include/ns3/core-module.h ] || { echo "aqm.sh: ns-3 is not installed (Debian: libns3-dev)" >&2; exit 1; }
mkdir -p ../../.cache/bench
program=$(cd ../../.cache/bench && pwd)/aqm_ns3
g++ -O2 -DNDEBUG -std=c++17 aqm_ns3.cc -o "$program" -lns3-core -lns3-network -lns3-internet \
    -lns3-point-to-point -lns3-applications -lns3-stats -lns3-traffic-control
case_of() {
    for seed in 1 2 3 4 5; do
        echo discipline="$1" variant="$2" flows="$3" own="${4:-}" seed=$seed
    done
}
{
    echo "discipline,algorithm,flows,own,seed,goodput_mbps,waited_ms,dropped,gone"
    {
        for discipline in codel fq-codel pie; do
            for variant in TcpNewReno TcpCubic; do
                for flows in 1 4 16; do
                    case_of $discipline $variant $flows
                done
            done
        done
        # where something of ns-3's own made the difference
        case_of codel TcpNewReno 1 device
        case_of fq-codel TcpNewReno 1 device
        case_of codel TcpNewReno 1 recovery
        case_of fq-codel TcpNewReno 1 recovery
        case_of fq-codel TcpNewReno 16 pipe
        case_of codel TcpCubic 16 clamp
        case_of pie TcpCubic 1 clamp
        case_of pie TcpCubic 4 clamp
    } | xargs -P "${JOBS:-2}" -L 1 "$program" | sort -t, -k1,1 -k2,2r -k3,3n -k4,4 -k5,5n
} > aqm_ns3.csv
{
    echo "discipline,mbps,delay_ms,flows,jitter_ms,seed,goodput_mbps,waited_ms,dropped,gone"
    while read -r discipline mbps delay flows service; do
        for jitter in 0 "$service"; do
            for seed in $(seq 20); do
                echo discipline="$discipline" mbps="$mbps" delay_ms="$delay" flows="$flows" jitter_ms="$jitter" seed=$seed
            done
        done
    done << CASES | xargs -P "${JOBS:-2}" -L 1 "$program" | sort -t, -k1,1 -k2,2n -k4,4n -k5,5n -k6,6n
codel 10 20 2 1.2
fq-codel 4 50 2 3
fq-codel 4 50 8 3
fq-codel 25 40 3 0.48
CASES
} > aqm_phase_ns3.csv
{
    echo "flows,mbps,threshold_ms,seed,goodput_mbps,waited_ms,dropped,gone,marked"
    for mbps in 10 50; do
        for flows in 1 4; do
            for threshold in 2 10; do
                for seed in 1 2 3 4 5; do
                    echo discipline=step variant=TcpDctcp flows=$flows mbps=$mbps threshold_ms=$threshold seed=$seed
                done
            done
        done
    done | xargs -P "${JOBS:-2}" -L 1 "$program" | sort -t, -k1,1n -k2,2n -k3,3n -k4,4n
} > dctcp_ns3.csv
