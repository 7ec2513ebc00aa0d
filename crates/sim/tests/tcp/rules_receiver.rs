//! The acknowledgements of a receiver, packet by packet.

use crate::bench::receiver;
use tidegate_core::datagram::TcpBody;
use tidegate_core::{Span, Time};
use tidegate_sim::traffic::tcp::{SackRecovery, TcpSettings, Variant};

fn delayed() -> TcpSettings {
    TcpSettings { delayed_ack: Some(Span::from_millis(200)), ..TcpSettings::default() }
}

fn blocks_of(packet: &tidegate_core::Packet) -> Vec<(u32, u32)> {
    packet.sack().into_iter().flatten().copied().filter(|(start, end)| start != end).collect()
}

fn acks(sent: Vec<(TcpBody, tidegate_core::Packet)>) -> Vec<u32> {
    sent.iter().map(|(body, _)| body.ack).collect()
}

#[test]
fn without_delay_every_segment_is_acknowledged_at_once() {
    let mut end = receiver(&TcpSettings::default());
    end.data(0, 1000);
    end.data(1000, 1000);
    assert_eq!(acks(end.sent()), [1000, 2000]);
    assert_eq!(end.pass(Span::from_secs(10)), None);
}

/// RFC 5681 section 4.2.
#[test]
fn delayed_acknowledgements_follow_the_rules() {
    let mut end = receiver(&delayed());
    end.data(0, 1000);
    assert!(acks(end.sent()).is_empty(), "the first one waits");
    end.now = Time::from_millis(5);
    end.data(1000, 1000);
    assert_eq!(acks(end.sent()), [2000], "every second one");
    end.now = Time::from_millis(10);
    end.data(2000, 1000);
    assert_eq!(end.wait_until(Time::from_secs(1)), Some(Time::from_millis(210)), "200 ms at most");
    assert_eq!(acks(end.sent()), [3000]);
    end.data(4000, 1000);
    assert_eq!(acks(end.sent()), [3000], "beyond a hole: at once");
    end.data(6000, 1000);
    assert_eq!(acks(end.sent()), [3000]);
    end.data(3000, 1000);
    assert_eq!(acks(end.sent()), [5000], "fills part of the hole: at once");
    end.data(5000, 1000);
    assert_eq!(acks(end.sent()), [7000], "fills the rest");
    end.data(0, 1000);
    assert_eq!(acks(end.sent()), [7000], "an old one: at once");
    end.data(7000, 1000);
    assert!(acks(end.sent()).is_empty(), "and all begins again");
    end.data(9000, 1000);
    assert_eq!(acks(end.sent()), [8000], "the one that waited is covered");
    assert_eq!(end.pass(Span::from_secs(1)), None, "and does not come again");
}

/// RFC 2018 section 4: the block with the newest segment first, then those reported before.
#[test]
fn sack_blocks_are_those_of_rfc_2018() {
    let settings = TcpSettings { variant: Variant::Sack, initial_sequence: 5000, ..TcpSettings::default() };
    let mut end = receiver(&settings);
    let mut data = |sequence| {
        end.data(sequence, 500);
        let (body, packet) = end.sent().pop().unwrap();
        (body.ack, blocks_of(&packet), packet.size)
    };
    // the first is lost
    assert_eq!(data(5500), (5000, vec![(5500, 6000)], 40 + 12));
    assert_eq!(data(6000), (5000, vec![(5500, 6500)], 40 + 12));
    // every second one is lost
    assert_eq!(data(7000), (5000, vec![(7000, 7500), (5500, 6500)], 40 + 20));
    assert_eq!(data(8000), (5000, vec![(8000, 8500), (7000, 7500), (5500, 6500)], 40 + 28));
    assert_eq!(data(9000).1, [(9000, 9500), (8000, 8500), (7000, 7500)], "three at most");
    // the hole between two runs is filled: they become one, and come first
    assert_eq!(data(6500).1, [(5500, 7500), (9000, 9500), (8000, 8500)]);
    // the first hole: the joined run is acknowledged and no longer in a block
    assert_eq!(data(5000), (7500, vec![(9000, 9500), (8000, 8500)], 40 + 20));
    assert_eq!(data(7500), (8500, vec![(9000, 9500)], 40 + 12));
    assert_eq!(data(8500), (9500, vec![], 40));
}

/// RFC 2883 section 4: data that the receiver has come first, whether they are acknowledged or inside a block, which then
/// follows; once, and only with RACK.
#[test]
fn copies_come_first_among_the_blocks() {
    for (recovery, tells) in [(SackRecovery::Rack, true), (SackRecovery::Rfc6675, false)] {
        let settings =
            TcpSettings { variant: Variant::Sack, recovery: Some(recovery), ..TcpSettings::default() };
        let mut end = receiver(&settings);
        let mut data = |sequence| {
            end.data(sequence, 500);
            blocks_of(&end.sent().pop().unwrap().1)
        };
        let copy = |block| Some(block).filter(|_| tells);
        assert!(data(0).is_empty());
        assert_eq!(data(0), Vec::from_iter(copy((0, 500))));
        assert_eq!(data(1000), [(1000, 1500)]);
        assert_eq!(data(1500), [(1000, 2000)], "it touches a run and is not inside");
        assert_eq!(data(1000), Vec::from_iter(copy((1000, 1500)).into_iter().chain([(1000, 2000)])));
        assert_eq!(data(0), Vec::from_iter(copy((0, 500)).into_iter().chain([(1000, 2000)])));
        assert!(data(500).is_empty());
    }
}

#[test]
fn without_sack_there_are_no_blocks() {
    let mut end = receiver(&TcpSettings::default());
    end.data(1000, 1000);
    let (_, packet) = end.sent().pop().unwrap();
    assert_eq!((packet.attachment.is_none(), packet.size), (true, 40));
}

#[test]
fn sequence_numbers_wrap() {
    let initial = u32::MAX - 1499;
    let settings =
        TcpSettings { variant: Variant::Sack, initial_sequence: initial, ..TcpSettings::default() };
    let mut end = receiver(&settings);
    end.data(initial.wrapping_add(1000), 1000);
    end.data(initial.wrapping_add(3000), 1000);
    end.data(initial, 1000);
    let sent = end.sent();
    assert_eq!(sent[1].1.sack().unwrap()[..2], [(1500, 2500), (u32::MAX - 499, 500)]);
    assert_eq!(sent[2].0.ack, 500);
}

#[test]
fn a_syn_is_answered_each_time() {
    let settings = TcpSettings { handshake: true, initial_sequence: 99, ..TcpSettings::default() };
    let mut end = receiver(&settings);
    end.syn(99);
    end.syn(99);
    end.data(100, 10);
    let sent: Vec<_> = end.sent().iter().map(|(body, _)| (body.sequence, body.ack, body.flags)).collect();
    let answer = TcpBody::SYN | TcpBody::ACK;
    assert_eq!(sent, [(0, 100, answer), (0, 100, answer), (1, 110, TcpBody::ACK)]);
}

/// RFC 7323 section 2.2: the window of a SYN is not shifted, all others are.
#[test]
fn windows_are_shifted_except_those_of_a_syn() {
    for (receive_window, of_a_syn, later) in [
        (65_535, 65_535, 65_535),
        (65_536, 65_535, 32_768),
        (100_001, 65_535, 50_000),
        (20_000, 20_000, 20_000),
    ] {
        let mut end = receiver(&TcpSettings { handshake: true, receive_window, ..TcpSettings::default() });
        end.syn(0);
        end.data(1, 10);
        let sent = end.sent();
        assert_eq!([sent[0].0.window, sent[1].0.window], [of_a_syn, later]);
        let scale = sent[0].1.opening().scale.unwrap();
        assert_eq!(u32::from(later) << scale, receive_window >> scale << scale);
        assert_eq!((sent[0].1.size, sent[1].1.size), (48, 40));
    }
}

#[test]
fn a_packet_that_is_not_tcp_ends_the_run_with_a_reason() {
    let mut end = receiver(&TcpSettings::default());
    end.stray();
    assert_eq!(end.failure(), Some("a TCP receiver got a datagram packet of flow 7"));
}
