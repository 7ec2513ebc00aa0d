# The dumbbell of benches/README.md in ns-2.   ns ns2.tcl cbr=10 tcp=0 pairs=10 rate_mbps=20 queue=100 duration_s=600
# No traces. Prints one JSON line in the form that benches/run.py reads.

array set work {cbr 10 tcp 0 pairs 10 rate_mbps 20 queue 100 duration_s 600}
foreach setting $argv {
    lassign [split $setting =] key value
    if {![info exists work($key)]} { puts stderr "ns2.tcl: no such setting: $key"; exit 2 }
    set work($key) $value
}

set begun [clock microseconds]
set ns [new Simulator]
# ns-2 carries every header it knows in every packet unless told which ones are needed.
remove-all-packet-headers
add-packet-header IP TCP Flags

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right $work(rate_mbps)Mb 20ms DropTail
$ns queue-limit $left $right $work(queue)
for {set i 0} {$i < $work(pairs)} {incr i} {
    set sender($i) [$ns node]
    set receiver($i) [$ns node]
    $ns duplex-link $sender($i) $left 1Gb 1ms DropTail
    $ns duplex-link $right $receiver($i) 1Gb 1ms DropTail
    $ns queue-limit $sender($i) $left 1000
    $ns queue-limit $right $receiver($i) 1000
}

proc join_pair {from to pair} {
    global ns sender receiver
    $ns attach-agent $sender($pair) $from
    $ns attach-agent $receiver($pair) $to
    $ns connect $from $to
}

# 1200 bytes every 9.6 ms are 1 Mb/s; the flows' starts are spread over one interval.
set interval 0.0096
for {set i 0} {$i < $work(cbr)} {incr i} {
    set udp [new Agent/UDP]
    $udp set packetSize_ 1200
    join_pair $udp [new Agent/Null] [expr {$i % $work(pairs)}]
    set source [new Application/Traffic/CBR]
    $source set packetSize_ 1200
    $source set interval_ $interval
    $source attach-agent $udp
    $ns at [expr {$interval * $i / $work(cbr)}] "$source start"
}

# TCP flows take the pairs after the CBR flows; 1460 bytes and ns-2's 40 bytes of headers, an ACK per packet.
for {set i 0} {$i < $work(tcp)} {incr i} {
    set tcp [new Agent/TCP/Sack1]
    $tcp set packetSize_ 1460
    $tcp set window_ 10000
    join_pair $tcp [new Agent/TCPSink/Sack1] [expr {($work(cbr) + $i) % $work(pairs)}]
    set source [new Application/FTP]
    $source attach-agent $tcp
    $ns at [expr {0.1 * $i}] "$source start"
}

set bottleneck [$ns monitor-queue $left $right ""]
proc finish {} {
    global bottleneck begun running
    set now [clock microseconds]
    puts [format {{"packets": %.0f, "drops": %.0f, "hops_per_packet": 3, "setup_s": %.6f, "run_s": %.6f}} \
        [$bottleneck set pdepartures_] [$bottleneck set pdrops_] \
        [expr {($running - $begun) / 1e6}] [expr {($now - $running) / 1e6}]]
    exit 0
}
$ns at $work(duration_s) finish
set running [clock microseconds]
$ns run
