#!/bin/sh
# TFRC under random loss in ns-2 2.35, with its own least t_RTO and with four round trips, as tfrc_ns2.csv.
#   apt-get install ns2
set -eu
cd "$(dirname "$0")"
command -v ns > /dev/null || { echo "tfrc.sh: ns-2 is not installed (Debian: ns2)" >&2; exit 1; }
{
    echo "loss,least_rto_s,seed,rate_kbps"
    for loss in 0.01 0.05 0.1; do
        for least in default 0.4; do
            for seed in $(seq 10); do
                ns tfrc.tcl $loss $least "$seed"
            done
        done
    done
} > tfrc_ns2.csv
