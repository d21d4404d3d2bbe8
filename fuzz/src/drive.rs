//! Fuzzing without a fuzzer, for toolchains that have none: `drive SECONDS [TARGET...]`.
//!
//! Random inputs and changed regressions, one target after the other. It knows nothing of coverage,
//! so it finds less than cargo-fuzz in the same time. A panic prints the input, which becomes a
//! file in `regressions/TARGET/`.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use holdback_fuzz::targets::{ALL, Target};

/// xorshift64*: small, and a seed repeats a run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n.max(1) as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

fn input(dice: &mut Dice, kept: &[Vec<u8>]) -> Vec<u8> {
    let mut data = if kept.is_empty() || dice.below(4) > 0 {
        (0..dice.below(120)).map(|_| dice.byte()).collect()
    } else {
        kept[dice.below(kept.len())].clone()
    };
    for _ in 0..dice.below(4) {
        if !data.is_empty() {
            let at = dice.below(data.len());
            data[at] = dice.byte();
        }
    }
    data
}

fn regressions(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read(file.path()).ok()).collect()
}

fn drive(name: &str, target: Target, time: Duration, seed: u64) {
    let mut dice = Dice(seed | 1);
    let kept = regressions(name);
    let (start, mut tried) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        for _ in 0..1000 {
            let data = input(&mut dice, &kept);
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                println!("{name}: broken by {data:?} (seed {seed})");
                let file = format!("broken-{name}-{:016x}", dice.next());
                std::fs::write(&file, &data).expect("the input can be written");
                println!("written to {file}; keep it in fuzz/regressions/{name}/");
                std::process::exit(1);
            }
            tried += 1;
        }
    }
    println!("{name}: {tried} inputs, seed {seed}");
    let _ = std::io::stdout().flush();
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|word| word.parse().ok()).unwrap_or(10_u64);
    let names: Vec<String> = arguments.collect();
    let chosen: Vec<_> = ALL
        .iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name))
        .collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = now.map_or(1, |time| time.as_secs());
    let share = Duration::from_secs(seconds) / u32::try_from(chosen.len().max(1)).unwrap_or(1);
    for &&(name, target) in &chosen {
        drive(name, target, share, seed);
    }
}
