use super::*;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let more = value > 0x7f;
        out.push(value as u8 & 0x7f | u8::from(more) << 7);
        value >>= 7;
        if !more {
            return out;
        }
    }
}

fn number(field: u32, value: u64) -> Vec<u8> {
    [varint(u64::from(field) << 3), varint(value)].concat()
}

fn bytes(field: u32, value: &[u8]) -> Vec<u8> {
    [varint(u64::from(field) << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn begin() -> Vec<u8> {
    bytes(16, &[number(1, 1000), number(2, 2), number(3, 1_700_000_000_000)].concat())
}

/// Two packets, 3 ms and one number apart.
fn outgoing() -> Vec<u8> {
    let numbers = [(1, 1010), (2, 0), (3, 96), (4, 65_535), (8, 1000), (9, 24), (10, 0), (11, 1), (15, 7)];
    let fixed =
        |field: u32, value: u32| [varint(u64::from(field) << 3 | 5), value.to_le_bytes().to_vec()].concat();
    let mut batch: Vec<u8> = numbers.iter().flat_map(|&(field, value)| number(field, value)).collect();
    batch.extend(fixed(5, 90_000));
    batch.extend(fixed(6, 0xdead_beef));
    // encoding 0, 2 bits, 3
    batch.extend(bytes(101, &[0b0000_0001, 0b1100_0000]));
    batch.extend(bytes(102, &[0b0000_0000, 0b1000_0000]));
    // encoding 1, 1 bit, no sign, all there, values of 16 bits: 65535 wraps
    batch.extend(bytes(104, &[0b0100_0000, 0b0000_1111, 0b1000_0000]));
    batch.extend(bytes(115, &[0b0000_0000, 0b1000_0000]));
    bytes(3, &batch)
}

fn feedback() -> Vec<u8> {
    let batch =
        [number(1, 1050), number(3, 1), bytes(2, b"abcd"), bytes(101, &[0, 0x80]), bytes(102, b"\x03xyz")];
    bytes(4, &batch.concat())
}

#[test]
fn a_log_by_hand() {
    let unknown = bytes(200, b"whatever");
    let log = EventLog::read(&[begin(), outgoing(), feedback(), unknown].concat()).unwrap();
    assert_eq!(log.begin, Some((1000, 1_700_000_000_000)));
    let first = LoggedRtp {
        at: 1010,
        ssrc: 0xdead_beef,
        timestamp: 90_000,
        size: 1024,
        payload: 1000,
        abs_send_time: None,
        sequence: 65_535,
        transport_sequence: Some(7),
        payload_type: 96,
        marker: false,
    };
    let second = LoggedRtp { at: 1013, sequence: 0, transport_sequence: Some(8), marker: true, ..first };
    assert_eq!(log.outgoing, [first, second]);
    let rtcp: Vec<_> =
        log.incoming_rtcp.iter().map(|datagram| (datagram.at, datagram.bytes.as_slice())).collect();
    assert_eq!(rtcp, [(1050, b"abcd".as_slice()), (1051, b"xyz")]);
    assert_eq!(log.unknown, BTreeMap::from([(200, 1)]));
    assert_eq!(log.problems, Problems::default());
}

#[test]
fn events_before_a_cut_are_kept_and_the_cut_is_a_problem() {
    let whole = [begin(), outgoing(), feedback()].concat();
    let cut = EventLog::read(&whole[..whole.len() - 4]).unwrap();
    assert_eq!((cut.outgoing.len(), cut.incoming_rtcp.len(), cut.problems.count), (2, 0, 1));
    let offset = [begin(), outgoing()].concat().len() + 2;
    let length = feedback().len() - 2;
    let message = format!("byte {offset}: field 4 takes {length} bytes, but {} are left", length - 4);
    assert_eq!(cut.problems.first[0].to_string(), message);
    // wherever it is cut, there is a log or an error, and never a panic
    for end in 0..whole.len() {
        let _ = EventLog::read(&whole[..end]);
    }
}

#[test]
fn a_file_of_ten_thousand_broken_batches_is_given_up() {
    let lacks = bytes(3, &number(1, 5));
    let log = EventLog::read(&[lacks.repeat(9_999), feedback()].concat()).unwrap();
    assert_eq!((log.incoming_rtcp.len(), log.problems.count), (2, 9_999));
    let problem = EventLog::read(&[lacks.repeat(10_000), feedback()].concat()).unwrap_err();
    assert!(problem.message.ends_with("lacks a marker bit (field 2)"));
}

#[test]
fn a_batch_that_is_wrong_costs_itself_alone() {
    let claims = bytes(3, &[number(1, 5), number(11, u64::from(u32::MAX))].concat());
    let log = EventLog::read(&[begin(), claims, feedback()].concat()).unwrap();
    assert_eq!((log.outgoing.len(), log.incoming_rtcp.len()), (0, 2));
    let message = &log.problems.first[0].message;
    assert_eq!(
        message,
        "found 4294967295 events after the first in a batch of 8 bytes; expected fewer than 32"
    );
    let lacks = bytes(3, &number(1, 5));
    let log = EventLog::read(&[begin(), lacks].concat()).unwrap();
    assert!(log.problems.first[0].message.ends_with("lacks a marker bit (field 2)"));
    let far = bytes(32, &number(1, u64::MAX / 2));
    assert!(
        EventLog::read(&[begin(), far].concat()).unwrap().problems.first[0].message.contains("a century")
    );
}

#[test]
fn bytes_that_are_no_log_are_refused() {
    let error = |bytes: &[u8]| EventLog::read(bytes).unwrap_err().to_string();
    assert!(error(b"").contains("found no events of an RTC event log"));
    assert!(error(&bytes(1, b"x")).contains("format 1"));
    let format_3 = bytes(16, &[number(1, 1000), number(2, 3)].concat());
    assert!(error(&format_3).contains("found an RTC event log of format 3; expected format 2"));
    assert!(error(b"{\"a\": 1}").starts_with("byte 0: "));
}
