#!/bin/sh
# The runs behind the tables of the document "vardhan", in ns-2 2.35, as vardhan_ns2.csv. Settings: papers/vardhan.
#   apt-get install ns2
set -eu
cd "$(dirname "$0")"
command -v ns > /dev/null || { echo "vardhan.sh: ns-2 is not installed (Debian: ns2)" >&2; exit 1; }

# table, row, settings of vardhan.tcl ...
rows() {
    prefix=$1,$2
    shift 2
    counts=$(ns vardhan.tcl "$@")
    echo "$counts" | sed "s|^|$prefix,|"
}
{
    echo "table,row,flow,until_s,sent,received,dropped"
    for mbps in 0.5 1 1.5 2 2.5 3 3.5 4; do
        rows 1 "$mbps Mb/s" upper=tcp:Tahoe:20:0.08 lower="udp:${mbps}Mb:1000:0.1"
        rows 1 "$mbps Mb/s exact clock" tick=0.0001 upper=tcp:Tahoe:20:0.08 lower="udp:${mbps}Mb:1000:0.1"
    done
    for row in 256:30 384:50 512:70 768:90 1024:100; do
        rate=${row%:*} window=${row#*:}
        for bottleneck in 1Mb 2Mb; do
            for kind in tfrc:${rate}kb:1000 udp:$((rate * 1032))b:1032; do
                rows 2 "$rate kb/s $window $bottleneck ${kind%%:*}" bottleneck=$bottleneck delays=2,10,2 \
                    upper=tcp:Newreno:$window:0.0 lower=$kind:0.0
            done
        done
    done
    # TFRC of the last three rows at thirty starts within 200 ms: how much of the counts is the start
    for row in 512:70 768:90 1024:100; do
        rate=${row%:*} window=${row#*:}
        for step in $(seq 0 29); do
            start=$(awk "BEGIN { print $step * 0.2 / 30 }")
            rows 2 "$rate kb/s $window start $step" bottleneck=1Mb delays=2,10,2 \
                upper=tcp:Newreno:$window:0.0 lower=tfrc:${rate}kb:1000:$start
        done
    done
    rows 3 udp access=1Mb bottleneck=150kb delays=1,5,1 until=5,10,50,100 \
        upper=udp:64kb:160:0.08 lower=udp:100kb:160:0.1
    rows 3 tfrc access=1Mb bottleneck=100kb delays=1,5,1 until=5,10,50,100 upper=tfrc:64kb:160:0.08
    rows 3 "tfrc with feedback beside udp" access=1Mb bottleneck=150kb delays=1,10,1 until=5,10,50,100 feedback=1 \
        upper=tfrc:64kb:160:0.1 lower=udp:70kb:160:0.1
    for kind in udp tfrc; do
        rows 4 $kind bottleneck=1Mb delays=1,1,1 until=20,50,70,100 schedule=1 \
            upper=$kind:448kb:1000:0.1 lower=$kind:448kb:1000:0.1
    done
} > vardhan_ns2.csv
