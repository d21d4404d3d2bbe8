//! The public face: bytes in, bytes out.
#![forbid(unsafe_code)]

use std::fmt;
use std::str::FromStr;

use super::choices::Choices;
use super::dialect::anthropic::Anthropic;
use super::dialect::responses::Responses;
use super::entries::COLUMNS;
use super::error::Fault;
use super::event::{Event, Sink};
use super::framing::{Frame, Framer, Framing};
use super::json::Span;
use super::lane::{Lane, Scratch};
use super::options::{OnMalformed, StopField};
use super::{Context, Options, WireError, dialect};
use crate::error::Error;
use crate::set::StopSet;
use crate::stream::Match;

/// A provider's way of sending an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `openai.chat`: chat completions of `OpenAI`, vLLM, `SGLang`, `DeepSeek`, TGI, llama.cpp.
    OpenAiChat,
    /// `openai.completions`: the older text completions.
    OpenAiCompletions,
    /// `openai.responses`: the Responses API.
    OpenAiResponses,
    /// `anthropic.messages`
    AnthropicMessages,
    /// `gemini`: `streamGenerateContent?alt=sse`.
    Gemini,
    /// `ollama.chat`: `/api/chat`.
    OllamaChat,
    /// `ollama.generate`: `/api/generate`.
    OllamaGenerate,
    /// `llama.cpp`: the server's own `/completion`.
    LlamaCpp,
    /// `tgi`: `/generate_stream` of text-generation-inference.
    Tgi,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 9] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::OllamaChat,
        Self::OllamaGenerate,
        Self::LlamaCpp,
        Self::Tgi,
    ];

    /// Its name, such as `openai.chat`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai.chat",
            Self::OpenAiCompletions => "openai.completions",
            Self::OpenAiResponses => "openai.responses",
            Self::AnthropicMessages => "anthropic.messages",
            Self::Gemini => "gemini",
            Self::OllamaChat => "ollama.chat",
            Self::OllamaGenerate => "ollama.generate",
            Self::LlamaCpp => "llama.cpp",
            Self::Tgi => "tgi",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no dialect's; the message lists those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownDialect(String);

impl fmt::Display for UnknownDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Dialect::ALL.map(Dialect::name).join(", ");
        write!(f, "unknown dialect {:?}: there are {names}", self.0)
    }
}

impl std::error::Error for UnknownDialect {}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

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
    engine: Engine,
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
    /// The last frame written lacks its end.
    open: bool,
    failed: Option<WireError>,
}

#[derive(Clone, Debug)]
enum Engine {
    Choices(Box<Choices>),
    Anthropic(Box<Anthropic>),
    Responses(Box<Responses>),
}

impl Cutter {
    /// A cutter for one answer in `dialect`.
    ///
    /// # Errors
    /// When a stop was given as bytes, or an option contradicts the set.
    pub fn new(dialect: Dialect, stops: &StopSet, options: Options) -> Result<Self, Error> {
        Lane::new(stops, &options.matching, 0, false, 0)?; // so that no later lane can fail
        if let StopField::Named(name) = &options.stop_field {
            if name.is_empty() {
                return Err(Error::option(
                    "stop_field is empty: the key that names the stop needs a name".to_owned(),
                ));
            }
            if dialect::keys::own(dialect).any(|key| key == name) {
                return Err(Error::option(format!(
                    "stop_field is {name:?}: {dialect} has a meaning of its own for that key"
                )));
            }
        }
        let engine = Engine::new(dialect);
        let framing = engine.framing();
        Ok(Self {
            set: stops.clone(),
            options,
            framer: Framer::new(framing),
            engine,
            pending: Vec::new(),
            frame: 0,
            offset: 0,
            scratch: Scratch::default(),
            entries: Default::default(),
            joined: Vec::new(),
            matches: Vec::new(),
            ended: false,
            cut: false,
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
        let begin = body.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(body.len());
        let end = body
            .iter()
            .rposition(|byte| !byte.is_ascii_whitespace())
            .map_or(begin, |last| last + 1);
        let data = Span { start: begin, end };
        let event = Event { frame: body, json: data.of(body), data, error: false };
        let length = out.len();
        let result = self.with_engine(out, |engine, cx| engine.body(cx, &event));
        self.cut = true;
        self.ended = !self.matches.is_empty();
        match result {
            Ok(()) => {
                if self.matches.is_empty() {
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
                if matches!(fault, Fault::Malformed(_))
                    && self.options.on_malformed == OnMalformed::Pass
                {
                    out.extend_from_slice(body);
                    return Ok(());
                }
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
        let framing = self.engine.framing();
        let Some(first) = frame.data else {
            return self.with_engine(out, |engine, cx| {
                if frame.error {
                    engine.fail(cx);
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
        let result = match self.with_engine(out, |engine, cx| engine.event(cx, &event)) {
            Err(Fault::Malformed(_)) if self.options.on_malformed == OnMalformed::Pass => self
                .with_engine(out, |_, cx| {
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
        work: impl FnOnce(&mut Engine, &mut Context<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut cx = Context {
            set: &self.set,
            options: &self.options,
            scratch: &mut self.scratch,
            entries: &mut self.entries,
            sink: Sink { out, framing: self.engine.framing(), open: &mut self.open },
            matches: &mut self.matches,
            ended: &mut self.ended,
            cut: &mut self.cut,
        };
        work(&mut self.engine, &mut cx)
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

impl Engine {
    fn new(dialect: Dialect) -> Self {
        let shape = match dialect {
            Dialect::OpenAiResponses => return Self::Responses(Box::default()),
            Dialect::AnthropicMessages => return Self::Anthropic(Box::default()),
            Dialect::OpenAiChat => &dialect::openai_chat::SHAPE,
            Dialect::OpenAiCompletions => &dialect::openai_completions::SHAPE,
            Dialect::Gemini => &dialect::gemini::SHAPE,
            Dialect::OllamaChat => &dialect::ollama::CHAT,
            Dialect::OllamaGenerate => &dialect::ollama::GENERATE,
            Dialect::LlamaCpp => &dialect::llama_cpp::SHAPE,
            Dialect::Tgi => &dialect::tgi::SHAPE,
        };
        Self::Choices(Box::new(Choices::new(shape)))
    }

    fn framing(&self) -> Framing {
        match self {
            Self::Choices(engine) => engine.shape().framing,
            Self::Anthropic(_) | Self::Responses(_) => Framing::Events,
        }
    }

    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        match self {
            Self::Choices(engine) => engine.event(cx, event),
            Self::Anthropic(engine) => engine.event(cx, event),
            Self::Responses(engine) => engine.event(cx, event),
        }
    }

    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault> {
        match self {
            Self::Choices(engine) => engine.body(cx, event),
            Self::Anthropic(engine) => engine.body(cx, event),
            Self::Responses(engine) => engine.body(cx, event),
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Choices(engine) => engine.finish(cx),
            Self::Anthropic(engine) => engine.finish(cx),
            Self::Responses(engine) => engine.finish(cx),
        }
    }

    fn fail(&mut self, cx: &mut Context<'_>) {
        match self {
            Self::Choices(engine) => engine.fail(cx),
            Self::Anthropic(engine) => engine.fail(cx),
            Self::Responses(engine) => engine.fail(cx),
        }
    }
}
