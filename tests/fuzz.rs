//! Replays what fuzzing has found, for ever, and tries each target on inputs of its own: no fuzzer
//! needed.

#![allow(clippy::cast_possible_truncation, reason = "offsets of short inputs")]
#![allow(
    unreachable_pub,
    reason = "the targets belong to the crate in fuzz/, which needs them public"
)]

#[path = "../fuzz/src/targets.rs"]
mod targets;

use std::path::Path;

#[test]
fn every_regression_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/regressions");
    let mut replayed = 0;
    for &(name, target) in targets::ALL {
        for file in std::fs::read_dir(root.join(name)).into_iter().flatten().flatten() {
            target(&std::fs::read(file.path()).unwrap());
            replayed += 1;
        }
    }
    eprintln!("fuzz: {replayed} regressions replayed");
    assert!(replayed >= targets::ALL.len(), "each target keeps at least one input");
}

/// Short inputs over a few bytes, in order: every target must take whatever it is given.
#[test]
fn every_target_takes_short_inputs() {
    const BYTES: [u8; 8] = [0x00, 0x01, 0x22, 0x61, 0x80, 0x9f, 0xe8, 0xff];
    for &(_, target) in targets::ALL {
        for length in 0..=5 {
            for number in 0..BYTES.len().pow(length) {
                let digits =
                    (0..length).map(|place| BYTES[number / BYTES.len().pow(place) % BYTES.len()]);
                target(&digits.collect::<Vec<u8>>());
            }
        }
    }
}
