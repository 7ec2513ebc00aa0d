# One TFRC flow under random loss, 300 s after the first 30: ns tfrc.tcl LOSS LEAST_RTO SEED
# ns-2 puts its TCP's timeout into the equation (smoothed round-trip time and four deviations, in ticks of 0.1 s), but
# no less than minrto_, which is 0 by default; with minrto_ of four round trips t_RTO is RFC 5348's 4 R.
lassign $argv loss minrto seed
set ns [new Simulator]
$defaultRNG seed $seed
set a [$ns node]; set b [$ns node]
$ns duplex-link $a $b 10Mb 50ms DropTail
$ns queue-limit $a $b 1000
set em [new ErrorModel]
$em unit pkt
$em set rate_ $loss
set rng [new RNG]
$rng seed [expr {100 + $seed}]
set uni [new RandomVariable/Uniform]
$uni use-rng $rng
$em ranvar $uni
$em drop-target [new Agent/Null]
$ns lossmodel $em $a $b
set src [new Agent/TFRC]
set sink [new Agent/TFRCSink]
$src set packetSize_ 1500
if {$minrto ne "default"} { $src set minrto_ $minrto }
$ns attach-agent $a $src
$ns attach-agent $b $sink
$ns connect $src $sink
set ftp [new Application/FTP]
$ftp attach-agent $src
$ns at 0 "$ftp start"
set begin 0
$ns at 30 "set begin \[$src set ndatapack_\]"
$ns at 330 "puts \[format %s,%s,%s,%.2f $loss $minrto $seed \[expr (\[$src set ndatapack_\] - \$begin) * 1500 * 8 / 300.0 / 1000\]\]; exit 0"
$ns run
