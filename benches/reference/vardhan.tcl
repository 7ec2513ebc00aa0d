# One run of the document "vardhan" in ns-2, its Figure 1: what was sent, received and dropped up to some times.
#   ns vardhan.tcl bottleneck=2Mb access=5Mb delays=1,10,1 upper=tcp:Tahoe:20:0.08 lower=udp:500000:1000:0.1 until=100
# upper (N0 to N3) and lower (N1 to N2) are tcp:VARIANT:WINDOW:START, udp:BIT/S:BYTES:START, tfrc:BIT/S:BYTES:START or
# nothing; tick is the clock of TCP's timer, in seconds. schedule=1 changes the rates of udp and tfrc as section 4.6 does.
# feedback=1 counts what comes back with what goes out. Prints flow,until,sent,received,dropped.

array set run {bottleneck 2Mb access 5Mb delays 1,10,1 queue 50 upper "" lower "" schedule 0 until 100 tick 0.01 feedback 0}
foreach setting $argv {
    lassign [split $setting =] key value
    if {![info exists run($key)]} { puts stderr "vardhan.tcl: no such setting: $key"; exit 2 }
    set run($key) $value
}

set ns [new Simulator]
set file [file join /tmp vardhan-[pid].tr]
set trace [open $file w]
$ns trace-all $trace

foreach node {N0 N1 N2 N3 R1 R2} { set $node [$ns node] }
lassign [split $run(delays) ,] before middle after
foreach {from to rate delay} [list \
    $N0 $R1 $run(access) $before  $N1 $R1 $run(access) $before  $R1 $R2 $run(bottleneck) $middle \
    $R2 $N2 $run(access) $after   $R2 $N3 $run(access) $after] {
    $ns duplex-link $from $to $rate ${delay}ms DropTail
    $ns queue-limit $from $to $run(queue)
    $ns queue-limit $to $from $run(queue)
}

# Joins agents; a flow is told apart by its sender's and receiver's node.
proc join_agents {from to agent sink} {
    global ns
    $ns attach-agent $from $agent
    $ns attach-agent $to $sink
    $ns connect $agent $sink
}

proc constant_rate {agent rate size start} {
    global ns run
    set source [new Application/Traffic/CBR]
    $source set packetSize_ $size
    $source set rate_ $rate
    $source attach-agent $agent
    $ns at $start "$source start"
    $ns at 100.0 "$source stop"
    if {$run(schedule)} {
        foreach {time next} {20.0 20000 50.0 1000000 80.0 448000} { $ns at $time "$source set rate_ $next" }
    }
}

proc flow {from to spec} {
    global ns run
    lassign [split $spec :] kind first second start
    switch $kind {
        tcp {
            set agent [new [expr {$first eq "Tahoe" ? "Agent/TCP" : "Agent/TCP/$first"}]]
            $agent set window_ $second
            $agent set tcpTick_ $run(tick)
            $agent set packetSize_ 1000
            join_agents $from $to $agent [new Agent/TCPSink]
            set source [new Application/FTP]
            $source attach-agent $agent
            $ns at $start "$source start"
        }
        udp {
            set agent [new Agent/UDP]
            $agent set packetSize_ $second
            join_agents $from $to $agent [new Agent/Null]
            constant_rate $agent $first $second $start
        }
        tfrc {
            set agent [new Agent/TFRC]
            # sends what the application has, not whatever the rate allows
            $agent set SndrType_ 1
            $agent set packetSize_ $second
            join_agents $from $to $agent [new Agent/TFRCSink]
            constant_rate $agent $first $second $start
        }
    }
}
flow $N0 $N3 $run(upper)
flow $N1 $N2 $run(lower)

# Nodes are numbered as they were made. Data run from 0 to 3 and from 1 to 2, feedback the other way.
proc finish {} {
    global ns trace file run
    $ns flush-trace
    close $trace
    array set name {0 upper 1 lower}
    array set count {}
    set times [split $run(until) ,]
    set lines [open $file]
    while {[gets $lines line] >= 0} {
        lassign $line event time from to type size flags fid source sink
        set begin [expr {int($source)}]
        if {$begin > 1 && !$run(feedback)} continue
        set source [expr {$begin > 1 ? 3 - $begin : $begin}]
        if {$event eq "+" && $from == $begin} { set what sent
        } elseif {$event eq "r" && $to == 3 - $begin} { set what received
        } elseif {$event eq "d"} { set what dropped
        } else continue
        foreach until $times { if {$time <= $until} { incr count($source,$until,$what) } }
    }
    close $lines
    file delete $file
    foreach until $times {
        foreach source {0 1} {
            if {$run($name($source)) eq ""} continue
            set numbers {}
            foreach what {sent received dropped} {
                lappend numbers [expr {[info exists count($source,$until,$what)] ? $count($source,$until,$what) : 0}]
            }
            puts "$name($source),$until,[join $numbers ,]"
        }
    }
    exit 0
}
$ns at 100.0 finish
$ns run
