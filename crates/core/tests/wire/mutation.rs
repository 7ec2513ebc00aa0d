//! Well-formed packets with errors put into them, by the hundred thousand.

use crate::arbitrary::{self, KINDS};
use crate::checks::Target;
use crate::encoded;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tidegate_core::rng::Stream;

const ROUNDS: usize = 200_000;

/// Well-formed input for `target`.
fn seeds(target: Target, rng: &mut Stream) -> Vec<Vec<u8>> {
    match target {
        Target::Rtp => (0..100)
            .map(|_| {
                let header = arbitrary::header(rng);
                let mut bytes = Vec::new();
                header.encode(&mut bytes).expect("fits");
                bytes.extend([7; 5]);
                bytes.extend(vec![header.padding; usize::from(header.padding)]);
                bytes
            })
            .collect(),
        Target::Rtcp => (0..100)
            .map(|_| {
                let packets = arbitrary::many(rng, 1, 4, |rng| {
                    let kind = rng.below(KINDS);
                    arbitrary::packet(rng, kind)
                });
                encoded(&packets)
            })
            .collect(),
        _ => {
            let any = (0..100 * KINDS).map(|i| encoded(&[arbitrary::packet(rng, i % KINDS)]));
            any.filter_map(|packet| target.unframe(&packet)).collect()
        }
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], rng: &mut Stream) {
    const TELLING: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xbe, 0xfe, 0xff];
    for _ in 0..rng.below(4) {
        let length = input.len() as u64;
        // half of the time near the beginning, where the fields are that others hang on
        let reach = if rng.chance(0.5) { length.min(24) } else { length };
        let at = rng.below(reach) as usize;
        match rng.below(7) {
            _ if input.is_empty() => input.extend_from_slice(other),
            0 => input[at] ^= 1 << rng.below(8),
            1 => input[at] = TELLING[rng.below(8) as usize],
            2 => input[at] = rng.below(256) as u8,
            3 => input.truncate(at),
            4 => input.extend(std::iter::repeat_n(rng.below(256) as u8, 1 + rng.below(8) as usize)),
            5 => _ = input.remove(at),
            _ => {
                let from = rng.below(other.len() as u64 + 1) as usize;
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
}

fn storm(target: Target) {
    let mut rng = Stream::new(1, "mutation", &format!("{target:?}"));
    let seeds = seeds(target, &mut rng);
    assert!(seeds.len() >= 100);
    let mut well_formed = 0;
    for round in 0..ROUNDS {
        let pick = |rng: &mut Stream| rng.below(seeds.len() as u64) as usize;
        let mut input = seeds[pick(&mut rng)].clone();
        let other = pick(&mut rng);
        mutate(&mut input, &seeds[other], &mut rng);
        match catch_unwind(AssertUnwindSafe(|| target.check(&input))) {
            Ok(good) => well_formed += usize::from(good),
            Err(panic) => {
                eprintln!("{target:?}, round {round}: {input:02x?}");
                resume_unwind(panic);
            }
        }
    }
    // neither is the input so broken that nothing is ever read, nor so sound that nothing is ever wrong
    let share = well_formed as f64 / ROUNDS as f64;
    assert!((0.25..0.95).contains(&share), "{target:?}: {share} of the inputs were well-formed");
}

#[test]
fn rtp_withstands_mutations() {
    storm(Target::Rtp);
}

#[test]
fn compounds_withstand_mutations() {
    storm(Target::Rtcp);
}

#[test]
fn reports_withstand_mutations() {
    storm(Target::SrRr);
}

#[test]
fn sdes_bye_and_app_withstand_mutations() {
    storm(Target::SdesByeApp);
}

#[test]
fn nack_pli_sli_and_fir_withstand_mutations() {
    storm(Target::NackPliFir);
}

#[test]
fn remb_withstands_mutations() {
    storm(Target::Remb);
}

#[test]
fn twcc_withstands_mutations() {
    storm(Target::Twcc);
}

#[test]
fn ccfb_withstands_mutations() {
    storm(Target::Ccfb);
}

#[test]
fn ecn_feedback_and_extended_reports_withstand_mutations() {
    storm(Target::EcnXr);
}

#[test]
fn noise_is_no_danger_either() {
    let mut rng = Stream::new(2, "mutation", "noise");
    for target in Target::ALL {
        for _ in 0..20_000 {
            let noise = arbitrary::many(&mut rng, 0, 64, |rng| rng.below(256) as u8);
            let _ = target.check(&noise);
        }
    }
}
