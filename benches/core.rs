//! The core by itself, without Python: tokens, long documents, construction. `cargo bench` runs it;
//! `make bench` does too.
//!
//! Texts are made here, from words and code in a fixed order that looks like none; each run checks
//! that its text passes.

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use holdback::{StopSet, Stream};

const NATURAL: [&str; 16] = [
    "<|im_end|>",
    "</s>",
    "\n\nHuman:",
    "\nUser:",
    "<|eot_id|>",
    "### Response:",
    "\nObservation:",
    "<end_of_turn>",
    "</answer>",
    "[/INST]",
    "<|endoftext|>",
    "\nQuestion:",
    "</tool_call>",
    "\n\nAssistant:",
    "<|end|>",
    "END_OF_OUTPUT",
];

const PIECES: [&str; 16] = [
    "the answer ",
    "of a model ",
    "is read, ",
    "token by token",
    ".\n",
    "and then ",
    "Which value ",
    "if x < 0 {\n    ",
    "something else ",
    "because it ",
    "is often ",
    "### Notes\n",
    "known? ",
    "In general, ",
    "every number ",
    "(see below) ",
];

/// The next of a fixed sequence of numbers (Knuth's constants for a linear congruence).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 40).unwrap_or(0)
}

/// Prose with code in it, of at least `length` bytes.
fn text(length: usize) -> String {
    let (mut made, mut state) = (String::new(), 7);
    while made.len() < length {
        made.push_str(PIECES[next(&mut state) % PIECES.len()]);
    }
    made
}

/// The natural stops, then invented ones of the same styles.
fn stops(count: usize) -> Vec<String> {
    let mut state = 9;
    let invented = (NATURAL.len()..count).map(|number| {
        let tag = next(&mut state);
        match number % 3 {
            0 => format!("<|tool_{tag}|>"),
            1 => format!("\nSpeaker {tag}:"),
            _ => format!("</section-{tag}>"),
        }
    });
    NATURAL.iter().take(count).map(ToString::to_string).chain(invented).collect()
}

fn stream_of(count: usize) -> Stream {
    StopSet::new(stops(count)).and_then(|set| set.stream()).expect("the lists here are valid")
}

fn feed_all(stream: &mut Stream, chunks: &[&str], out: &mut String) {
    for chunk in chunks {
        out.clear();
        assert_eq!(stream.feed(black_box(chunk), out), Ok(None), "no text here has a stop");
        black_box(&out);
    }
}

/// Text in chunks of a size, one group for each size: tokens of 4 bytes, documents of 1 MiB.
fn feed(criterion: &mut Criterion, name: &str, length: usize, size: usize, counts: &[usize]) {
    let text = text(length);
    let chunks: Vec<&str> =
        (0..text.len()).step_by(size).map(|at| &text[at..text.len().min(at + size)]).collect();
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(text.len() as u64));
    for &count in counts {
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            let (mut stream, mut out) = (stream_of(count), String::with_capacity(size));
            bencher.iter(|| feed_all(&mut stream, &chunks, &mut out));
        });
    }
    group.finish();
}

fn tokens(criterion: &mut Criterion) {
    feed(criterion, "tokens of 4 bytes, by stops", 8000, 4, &[4, 256, 10_000]);
}

fn documents(criterion: &mut Criterion) {
    feed(criterion, "documents of 1 MiB, by stops", 1 << 20, 1 << 20, &[1, 4, 16, 256]);
}

fn construction(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("construction, by stops");
    for count in [1, 4, 16, 256, 10_000] {
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter_batched(
                || stops(count),
                |list| StopSet::new(black_box(list)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, tokens, documents, construction);
criterion_main!(benches);
