# TCP over one drop-tail bottleneck, for reference values.   ns tcp.tcl key=value ...
#
#   sender i --1 Gb/s, extra_i ms--> r1 --rate_mbps, one_way_ms, queue--> r2 --1 Gb/s, 0 ms--> receiver i
#
# The way back has the same rates and delays, so flow i has a two-way propagation of 2 * (one_way_ms + extra_i) ms.
# Packets are 1500 bytes on the wire (1460 of payload and ns-2's 40 bytes of headers), ACKs 40 bytes.
# With trace=1 the bottleneck's own ns-2 trace (+ enqueued, - transmission begun, d dropped, r received) goes to
# standard output. The figures of the senders come last, one line a flow that begins with "flow".

array set P {
    variant Sack1 rate_mbps 10 one_way_ms 20 extra_ms {0} queue 33 flows 1 delack 0 iw 2 min_rto 0.2
    jitter_ms 0 loss 0 seed 1 from 20 to 120 bytes 0 trace 1
}
foreach word $argv {
    set at [string first = $word]
    set key [string range $word 0 [expr {$at - 1}]]
    if {$at < 1 || ![info exists P($key)]} { puts stderr "tcp.tcl: no such setting: $word"; exit 2 }
    set P($key) [string range $word [expr {$at + 1}] end]
}

set payload 1460
set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags

set r1 [$ns node]
set r2 [$ns node]
$ns duplex-link $r1 $r2 $P(rate_mbps)Mb $P(one_way_ms)ms DropTail
$ns queue-limit $r1 $r2 $P(queue)
$ns queue-limit $r2 $r1 100000
if {$P(trace)} { $ns trace-queue $r1 $r2 stdout }

# The seed moves the start times, the loss pattern and the jitter, each by a generator of its own.
set starts [new RNG]
$starts seed [expr {1000 + $P(seed)}]
ns-random [expr {5000 + $P(seed)}]

if {$P(loss) > 0} {
    set losses [new RNG]
    $losses seed [expr {9000 + $P(seed)}]
    set draw [new RandomVariable/Uniform]
    $draw use-rng $losses
    set em [new ErrorModel]
    $em unit pkt
    $em set rate_ $P(loss)
    $em ranvar $draw
    $em drop-target [new Agent/Null]
    $ns lossmodel $em $r1 $r2
}

proc sink_class {variant delack} {
    set class Agent/TCPSink
    if {$variant eq "Sack1" || [string match Linux/* $variant]} { append class /Sack1 }
    if {$delack} { append class /DelAck }
    return $class
}

for {set i 0} {$i < $P(flows)} {incr i} {
    set s [$ns node]
    set t [$ns node]
    set extra [lindex $P(extra_ms) [expr {$i % [llength $P(extra_ms)]}]]
    $ns duplex-link $s $r1 1Gb ${extra}ms DropTail
    $ns duplex-link $r2 $t 1Gb 0ms DropTail
    foreach {a b} [list $s $r1 $r2 $t $r1 $s $t $r2] { $ns queue-limit $a $b 100000 }

    if {$P(variant) eq "Tahoe"} {
        set tcp [new Agent/TCP]
    } elseif {[string match Linux/* $P(variant)]} {
        set tcp [new Agent/TCP/Linux]
    } else {
        set tcp [new Agent/TCP/$P(variant)]
    }
    # TCP-Linux needs timestamps (its only source of round-trip times); ns-2 charges 10 bytes for them.
    set linux [string match Linux/* $P(variant)]
    $tcp set packetSize_ [expr {$linux ? $payload - 10 : $payload}]
    $tcp set window_ 100000
    $tcp set windowInit_ $P(iw)
    $tcp set minrto_ $P(min_rto)
    $tcp set overhead_ [expr {$P(jitter_ms) / 1000.0}]
    $tcp set fid_ $i
    set sink [new [sink_class $P(variant) $P(delack)]]
    $ns attach-agent $s $tcp
    $ns attach-agent $t $sink
    $ns connect $tcp $sink
    if {$linux} {
        $tcp set timestamps_ true
        $ns at 0 "$tcp select_ca [string range $P(variant) 6 end]"
    }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    set begin($i) [$starts uniform 0 1]
    if {$P(bytes) > 0} {
        # One packet more than the data: ns-2 counts the 40-byte SYN as the first. The last data packet is full-sized.
        $ns at $begin($i) "$ftp produce [expr {1 + ($P(bytes) + $payload - 1) / $payload}]"
    } else {
        $ns at $begin($i) "$ftp start"
    }
    set flow($i) $tcp
    set into($i) [$ns monitor-queue $r2 $t ""]
}

proc figures {i} {
    global flow into
    set tcp $flow($i)
    return [list [$tcp set ack_] [$tcp set ndatapack_] [$tcp set nrexmitpack_] [$tcp set nrexmit_] [$into($i) set pdepartures_]]
}
proc remember {} {
    global P before
    for {set i 0} {$i < $P(flows)} {incr i} { set before($i) [figures $i] }
}
proc finish {} {
    global P before begin
    for {set i 0} {$i < $P(flows)} {incr i} {
        set line "flow $i start $begin($i)"
        foreach name {acked sent retransmitted timeouts arrived} was $before($i) is [figures $i] {
            append line " $name [expr {$is - $was}]"
        }
        puts $line
    }
    exit 0
}
$ns at $P(from) remember
$ns at $P(to) finish
$ns run
