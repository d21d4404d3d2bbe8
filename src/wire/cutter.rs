//! The public face: bytes in, bytes out.
#![forbid(unsafe_code)]

use super::context::Context;
use super::dialect::{Dialect, Engine};
use super::error::{Fault, WireError};
use super::event::{Event, Sink};
use super::framing::{Frame, Framer};
use super::json::{Span, trimmed};
use super::logprobs::COLUMNS;
use super::options::{OnMalformed, Options, StopField};
use super::text_stream::{Scratch, TextStream};
use super::unread::Unread;
use crate::error::Error;
use crate::set::StopSet;
use crate::stream::Match;

/// A stop that ended a choice, or a block of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireMatch {
    /// The choice (`choices[].index`, `candidates[].index`, the Responses API's `output_index`), 0
    /// where there is only one.
    pub choice: u32,
    /// The content block (Anthropic's `index`, the Responses API's `content_index`).
    pub block: Option<u32>,
    /// The stop was found in what the model thinks.
    pub reasoning: bool,
    /// Which stop, and where in the text: offsets in characters of this choice's or block's text,
    /// chunks are its text frames.
    pub found: Match,
}

/// Cuts one answer of a provider at the first stop.
#[derive(Clone, Debug)]
pub struct Cutter {
    set: StopSet,
    options: Options,
    framer: Framer,
    engine: Box<dyn Engine>,
    dialect: Dialect,
    /// Input that is no whole frame yet.
    pending: Vec<u8>,
    /// Where `pending` begins.
    frame: u64,
    offset: u64,
    scratch: Scratch,
    entries: [Vec<u8>; COLUMNS],
    joined: Vec<u8>,
    matches: Vec<WireMatch>,
    ended: bool,
    /// The end of the stream is ours: nothing may follow it.
    cut: bool,
    unread: Unread,
    /// The last frame written lacks its end.
    open: bool,
    failed: Option<WireError>,
}

impl Cutter {
    /// A cutter for one answer in `dialect`.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn new(dialect: Dialect, stops: &StopSet, options: Options) -> Result<Self, Error> {
        TextStream::new(stops, &options.matching, 0, false, 0)?; // so that no later stream can fail
        if let StopField::Named(name) = &options.stop_field {
            if name.is_empty() {
                return Err(Error::option(
                    "stop_field is empty: the key that names the stop needs a name".to_owned(),
                ));
            }
            if dialect.entry().reserved.split_ascii_whitespace().any(|key| key == name) {
                return Err(Error::option(format!(
                    "stop_field is {name:?}: {dialect} has a meaning of its own for that key"
                )));
            }
        }
        let entry = dialect.entry();
        Ok(Self {
            set: stops.clone(),
            options,
            framer: Framer::new(entry.framing),
            engine: (entry.engine)(),
            dialect,
            pending: Vec::new(),
            frame: 0,
            offset: 0,
            scratch: Scratch::default(),
            entries: Default::default(),
            joined: Vec::new(),
            matches: Vec::new(),
            ended: false,
            cut: false,
            unread: Unread::default(),
            open: false,
            failed: None,
        })
    }

    /// Reads a piece of the stream, cut anywhere, and appends to `out` what may be sent on.
    ///
    /// # Errors
    /// For a frame that cannot be read or is beyond a limit. What came before it, and what was
    /// held, has been appended to `out`; further calls give the same error.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        self.run(input, out, false)
    }

    /// The input is over: a last frame without its line end is read, what is still held is appended
    /// to `out`, and with [`OnMatch::Drain`](super::OnMatch::Drain) the end, should the upstream
    /// have failed to send it.
    ///
    /// # Errors
    /// When the input broke off inside a frame; what was held has been appended to `out`.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.run(&[], out, true)?;
        if !self.cut {
            self.with_engine(out, |engine, cx| {
                engine.finish(cx);
                Ok(())
            })
            .map_err(|fault| self.error(fault))?;
        }
        self.cut = true;
        Ok(())
    }

    /// Cuts the answer to a request that does not stream, and appends it to `out`.
    /// [`Cutter::matches`] tells what was found.
    ///
    /// # Errors
    /// When the body cannot be read (it begins with `{` or `[` and is no JSON of this dialect);
    /// nothing is appended then, or with [`OnMalformed::Pass`] the body as it came. Also when this
    /// cutter has been used before.
    pub fn body(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        if self.frame > 0 || !self.pending.is_empty() {
            return Err(self.error(Fault::Used));
        }
        self.frame = 1;
        let data = trimmed(body);
        let event = Event { frame: body, json: data.of(body), data, error: false };
        let length = out.len();
        let on_malformed = self.options.on_malformed;
        let result = self.with_engine(out, |engine, cx| match engine.body(cx, &event) {
            Err(Fault::Malformed(_)) if on_malformed == OnMalformed::Pass => {
                cx.matches.clear();
                cx.pass_unread(event.json, "it cannot be read")
            }
            other => other,
        });
        self.cut = true;
        self.ended = !self.matches.is_empty();
        match result {
            Ok(()) => {
                if self.matches.is_empty() && !self.unread.copies_cut {
                    // Held text may have moved from one part to the next; an answer without a stop
                    // leaves as it came.
                    out.truncate(length);
                    out.extend_from_slice(body);
                }
                Ok(())
            }
            Err(fault) => {
                out.truncate(length);
                self.matches.clear();
                self.ended = false;
                self.frame = 0;
                Err(self.error(fault))
            }
        }
    }

    /// True when the end of the stream has been written: ours after a match, or the upstream's own.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The stops found so far, in the order in which they ended their choices.
    #[must_use]
    pub fn matches(&self) -> &[WireMatch] {
        &self.matches
    }

    /// Characters that were read as text, by the dialect's rules: where it stands, and which texts
    /// are the answer's. An echoed prompt counts.
    #[must_use]
    pub fn texts_read(&self) -> u64 {
        self.scratch.characters
    }

    /// Frames that came with something in them and could not be placed, so that a stop in them
    /// would not have been seen.
    #[must_use]
    pub fn frames_unread(&self) -> u64 {
        self.unread.frames
    }

    /// The first such frame: its first 200 characters.
    #[must_use]
    pub fn unread(&self) -> Option<&str> {
        self.unread.first.as_deref()
    }

    /// The stops.
    #[must_use]
    pub fn set(&self) -> &StopSet {
        &self.set
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, last: bool) -> Result<(), WireError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.cut {
            return Ok(());
        }
        // Whole frames are read where they stand; only an unfinished one is copied.
        let result = if self.pending.is_empty() {
            self.frames(input, out, last)
                .map(|read| self.pending.extend_from_slice(input.get(read..).unwrap_or(&[])))
        } else {
            let mut pending = std::mem::take(&mut self.pending);
            pending.extend_from_slice(input);
            let result = self.frames(&pending, out, last).map(|read| {
                pending.drain(..read);
            });
            self.pending = pending;
            result
        };
        let result = result.and_then(|()| {
            let limit = self.options.max_frame_bytes;
            if self.pending.len() > limit { Err(Fault::TooLong { limit }) } else { Ok(()) }
        });
        if self.cut {
            self.pending = Vec::new();
        }
        result.map_err(|fault| self.fail(fault, out))
    }

    /// Reads the whole frames at the front of `bytes` and says how many bytes they are.
    fn frames(&mut self, bytes: &[u8], out: &mut Vec<u8>, last: bool) -> Result<usize, Fault> {
        let mut at = 0;
        while !self.cut {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let Some(frame) = self.framer.next(rest, last) else { break };
            let limit = self.options.max_frame_bytes;
            if frame.len > limit {
                return Err(Fault::TooLong { limit });
            }
            let end = at + frame.len;
            let is_last = last && end == bytes.len();
            self.read(bytes.get(at..end).unwrap_or(&[]), &frame, out, is_last)?;
            self.frame += 1;
            self.offset += frame.len as u64;
            at = end;
        }
        Ok(if self.cut { bytes.len() } else { at })
    }

    fn read(
        &mut self,
        bytes: &[u8],
        frame: &Frame,
        out: &mut Vec<u8>,
        last: bool,
    ) -> Result<(), Fault> {
        let framing = self.dialect.entry().framing;
        let Some(first) = frame.data else {
            return self.with_engine(out, |engine, cx| {
                if frame.error {
                    engine.fail(cx);
                }
                if frame.strange {
                    cx.pass_unread(bytes, "it is no frame of a stream")?;
                }
                cx.sink.pass_bytes(bytes, last);
                Ok(())
            });
        };
        let mut joined = std::mem::take(&mut self.joined);
        let (json, data) = match frame.more.last() {
            None => (first.of(bytes), first),
            Some(last) => {
                // A line feed between tokens is white space, and none can stand inside a string: a
                // blank will do, and the frame can be written with one `data:` line if it has to
                // change.
                joined.clear();
                joined.extend_from_slice(first.of(bytes));
                for line in &frame.more {
                    joined.push(b' ');
                    joined.extend_from_slice(line.of(bytes));
                }
                (joined.as_slice(), Span { start: first.start, end: last.end })
            }
        };
        let event = Event { frame: bytes, json, data, error: frame.error };
        let result = self.with_engine(out, |engine, cx| {
            if frame.strange {
                cx.pass_unread(bytes, "it is no frame of a stream")?;
            }
            match trimmed(json).of(json) {
                [b'{', ..] => return engine.event(cx, &event),
                b"[DONE]" => {
                    engine.done(cx, &event);
                    cx.unread.over = true;
                    return Ok(());
                }
                [] => {}
                _ => cx.pass_unread(json, "its data is no JSON object")?,
            }
            cx.sink.pass(&event);
            Ok(())
        });
        let result = match result {
            Err(Fault::Malformed(_)) if self.options.on_malformed == OnMalformed::Pass => self
                .with_engine(out, |_, cx| {
                    cx.pass_unread(json, "it cannot be read")?;
                    cx.sink.pass(&event);
                    Ok(())
                }),
            Err(Fault::Malformed(_)) if last && !framing.complete(event.after()) => {
                Err(Fault::BrokenOff { bytes: bytes.len() })
            }
            other => other,
        };
        self.joined = joined;
        result
    }

    fn with_engine<T>(
        &mut self,
        out: &mut Vec<u8>,
        work: impl FnOnce(&mut dyn Engine, &mut Context<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut cx = Context {
            set: &self.set,
            options: &self.options,
            scratch: &mut self.scratch,
            entries: &mut self.entries,
            sink: Sink { out, framing: self.dialect.entry().framing, open: &mut self.open },
            matches: &mut self.matches,
            known: self.dialect.entry().known,
            unread: &mut self.unread,
            ended: &mut self.ended,
            cut: &mut self.cut,
        };
        work(self.engine.as_mut(), &mut cx)
    }

    /// The stream cannot be read on: what is held leaves, as at an error of the upstream.
    fn fail(&mut self, fault: Fault, out: &mut Vec<u8>) -> WireError {
        let error = self.error(fault);
        let _ = self.with_engine(out, |engine, cx| {
            engine.fail(cx);
            Ok(())
        });
        self.pending = Vec::new();
        self.failed = Some(error.clone());
        error
    }

    fn error(&self, fault: Fault) -> WireError {
        WireError { fault, frame: self.frame, offset: self.offset }
    }
}
