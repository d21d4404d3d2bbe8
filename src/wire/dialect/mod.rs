//! One small file per dialect, and the table of all.
//!
//! A dialect's file gives an [`Entry`]: its name, how its stream is cut into frames, the keys that
//! are its own, and the engine that reads it. Dialects whose frames hold choices share one engine
//! and give it a [`Spec`](spec::Spec); the dialects of typed events have engines of their own. A new
//! dialect is one file here and one line in the table.
#![forbid(unsafe_code)]

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::str::FromStr;

use super::context::Context;
use super::error::Fault;
use super::event::Event;
use super::frame::{Choice, ParsedFrame};
use super::framing::Framing;
use super::json::{Cursor, JsonResult, Kind, once};

mod anthropic;
mod cohere;
mod gemini;
mod llama_cpp;
mod ollama;
mod openai;
mod openai_chat;
mod openai_completions;
mod responses;
pub(super) mod spec;
mod tgi;

/// What there is to know of a dialect.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) framing: Framing,
    /// The keys that the dialect has itself in the object that says how an answer ended, separated
    /// by blanks. A `stop_field` cannot be one of them, or the object would have that key twice and
    /// readers would see whichever stands last. `stop_reason` and `matched_stop` of vLLM and
    /// `SGLang` are not among them: those name a stop, and one that is there already is written in
    /// place.
    pub(super) reserved: &'static str,
    /// The keys of its own frames that hold no text, or one that the dialect reads; separated by
    /// blanks. Keys that every dialect may have are in `unread`.
    pub(super) known: &'static str,
    pub(super) engine: fn() -> Box<dyn Engine>,
}

/// What reads one answer of a dialect.
pub(super) trait Engine: Send + Sync + fmt::Debug + UnwindSafe + RefUnwindSafe {
    /// Reads one event of a stream, whose data begin with `{`, and writes what becomes of it.
    fn event(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault>;

    /// Reads the answer to a request that does not stream.
    fn body(&mut self, cx: &mut Context<'_>, event: &Event<'_>) -> Result<(), Fault>;

    /// `data: [DONE]` came.
    fn done(&mut self, cx: &mut Context<'_>, event: &Event<'_>) {
        cx.sink.pass(event);
    }

    /// The input is over: what is held leaves, and a drained stream whose upstream broke off gets
    /// its end.
    fn finish(&mut self, cx: &mut Context<'_>);

    /// The stream cannot be read on: what is held leaves, or is dropped.
    fn fail(&mut self, cx: &mut Context<'_>);

    /// A copy of it, with all its state.
    fn copy(&self) -> Box<dyn Engine>;
}

impl Clone for Box<dyn Engine> {
    fn clone(&self) -> Self {
        self.copy()
    }
}

macro_rules! dialects {
    ($($(#[$doc:meta])* $name:ident => $entry:expr,)*) => {
        /// A provider's way of sending an answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Dialect {
            $($(#[$doc])* $name,)*
        }

        impl Dialect {
            /// All dialects.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            pub(super) fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$name => &$entry,)*
                }
            }
        }
    };
}

dialects! {
    /// `openai.chat`: chat completions of `OpenAI`, vLLM, `SGLang`, `DeepSeek`, TGI, llama.cpp.
    OpenAiChat => openai_chat::DIALECT,
    /// `openai.completions`: the older text completions.
    OpenAiCompletions => openai_completions::DIALECT,
    /// `openai.responses`: the Responses API.
    OpenAiResponses => responses::DIALECT,
    /// `anthropic.messages`
    AnthropicMessages => anthropic::DIALECT,
    /// `gemini`: `streamGenerateContent?alt=sse`.
    Gemini => gemini::DIALECT,
    /// `ollama.chat`: `/api/chat`.
    OllamaChat => ollama::CHAT,
    /// `ollama.generate`: `/api/generate`.
    OllamaGenerate => ollama::GENERATE,
    /// `llama.cpp`: the server's own `/completion`.
    LlamaCpp => llama_cpp::DIALECT,
    /// `tgi`: `/generate_stream` of text-generation-inference.
    Tgi => tgi::DIALECT,
    /// `cohere.chat`: `/v2/chat`.
    CohereChat => cohere::DIALECT,
}

impl Dialect {
    /// Its name, such as `openai.chat`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
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
        let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
        write!(f, "unknown dialect {:?}: there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownDialect {}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.iter().find(|dialect| dialect.name() == name);
        found.copied().ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// Reads the fields that frames with a list of choices share: the list under `name`, usage figures,
/// errors.
fn frame_fields(
    json: &[u8],
    parsed: &mut ParsedFrame,
    name: &[u8],
    read: fn(&mut Cursor<'_>, &mut Choice, &mut ParsedFrame) -> JsonResult<()>,
) -> JsonResult<()> {
    let mut cursor = Cursor::with_notes(json, std::mem::take(&mut parsed.notes));
    cursor.object(|cursor, key| {
        match key {
            _ if key == name && cursor.kind() == Kind::Array => {
                let span = cursor.array(|cursor, position| {
                    if cursor.kind() != Kind::Object {
                        return cursor.skip().map(|_| ());
                    }
                    // A choice that does not say its number has the one of its place.
                    let mut choice = Choice {
                        index: u32::try_from(position).unwrap_or(u32::MAX),
                        ..Choice::default()
                    };
                    read(cursor, &mut choice, parsed)?;
                    parsed.push_choice(&choice)
                })?;
                once(&mut parsed.list, span, span.start)?;
            }
            _ if key == name => {
                parsed.misplaced_if(matches!(cursor.kind(), Kind::Object | Kind::String));
                cursor.skip()?;
            }
            b"usage" | b"usageMetadata" => {
                parsed.usage |= cursor.kind() == Kind::Object;
                cursor.skip()?;
            }
            b"error" => {
                parsed.error |= cursor.kind() != Kind::Null;
                cursor.skip()?;
            }
            _ => {
                cursor.skip()?;
            }
        }
        Ok(())
    })?;
    cursor.end()?;
    parsed.notes = cursor.into_notes();
    Ok(())
}

/// Pieces of JSON to write.
mod put {
    use crate::wire::json::Span;

    /// A string from its raw inside.
    pub(super) fn quoted(raw: &[u8], out: &mut Vec<u8>) {
        out.push(b'"');
        out.extend_from_slice(raw);
        out.push(b'"');
    }

    /// `,"name":"raw"`
    pub(super) fn field(name: &str, raw: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"");
        crate::wire::text::encode(name, out);
        out.extend_from_slice(b"\":");
        quoted(raw, out);
    }

    /// An insertion here.
    pub(super) fn point(at: usize) -> Span {
        Span { start: at, end: at }
    }
}
