//! Provider streams of any bytes: the result does not depend on how the input is cut, and a frame
//! that needs no change is the same bytes.

use holdback::StopSet;
use holdback::wire::{Cutter, Dialect, OnMalformed, OnMatch, Options};

/// The data: dialect, options, size of the pieces, then the stream.
pub fn wire(data: &[u8]) {
    let [dialect, flags, size, stream @ ..] = data else { return };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let stops: &[&str] =
        [&["END"][..], &[], &["\n\nUser:", "a"], &["é", "😀"]][usize::from(flags & 0b11)];
    let stops = StopSet::new(stops).expect("valid stops");
    let mut options = Options::default();
    options.matching.include_stop = (flags & 0b100 != 0).into();
    options.on_match = if flags & 0b1000 != 0 { OnMatch::Drain } else { OnMatch::Cancel };
    options.on_malformed =
        if flags & 0b1_0000 != 0 { OnMalformed::Pass } else { OnMalformed::Fail };
    options.cut_reasoning = flags & 0b10_0000 != 0;
    options.choices = [None, Some(1), Some(2), Some(4)][usize::from(flags >> 6)];
    options.max_frame_bytes = 4096;
    let run = |size: usize| {
        let mut cutter =
            Cutter::new(dialect, &stops, options.clone()).expect("options that go together");
        let mut out = Vec::new();
        let fed = stream.chunks(size).try_for_each(|piece| cutter.feed(piece, &mut out));
        let ended = fed.and_then(|()| cutter.finish(&mut out));
        (out, ended.map_err(|error| error.to_string()), cutter.ended())
    };
    let whole = run(stream.len().max(1));
    assert_eq!(
        run(usize::from(*size) % 7 + 1),
        whole,
        "{dialect:?} {:?}",
        String::from_utf8_lossy(stream)
    );
    if stops.stops().is_empty() && whole.1.is_ok() && flags & 0b1_1000 == 0 {
        assert!(stream.starts_with(&whole.0) || whole.2, "without stops the stream is copied");
    }
    let mut body = Vec::new();
    // Any body: an error or an answer, never a panic.
    let _ = Cutter::new(dialect, &stops, options)
        .expect("options that go together")
        .body(stream, &mut body);
}
