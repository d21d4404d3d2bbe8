//! What a caller can choose, and the limits that keep memory bounded.
#![forbid(unsafe_code)]

use crate::stream::StreamOptions;

/// Where a match is told beside the provider's own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StopField {
    /// As the family has it: `matched_stop` in a stream that shows that key (`SGLang`), else
    /// `stop_reason` (vLLM) in the `OpenAI` chat and completions dialects. Other dialects get no
    /// field beyond their own.
    #[default]
    Family,
    /// This key, beside the finish field of any dialect: not empty, and none of the keys that the
    /// dialect has there itself.
    Named(String),
    /// No key is added. One that is there already (`"stop_reason":null`) is left alone too.
    Off,
}

/// What happens once all choices have ended by a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMatch {
    /// The end of the stream is written at once, and whatever is fed after it is swallowed: the
    /// caller hangs up.
    #[default]
    Cancel,
    /// The caller reads on to the upstream's own end, for its usage figures: further text is
    /// swallowed, and the end is written when the upstream ends.
    Drain,
}

/// What happens to held text when the upstream reports an error in mid-stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It leaves before the error does.
    #[default]
    Flush,
    /// It is dropped.
    Drop,
}

/// What happens to a frame that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMalformed {
    /// The stream ends with an error; a stop in it could not be seen.
    #[default]
    Fail,
    /// It leaves as it came, unread.
    Pass,
}

/// What happens to a frame that could not be placed while stops are looked for: it is no frame of
/// the dialect, so that a stop in it would not be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnread {
    /// It passes, and [`Cutter::frames_unread`](super::Cutter::frames_unread) counts it.
    #[default]
    Pass,
    /// The stream ends with an error.
    Fail,
}

/// How a [`Cutter`](super::Cutter) is to behave.
///
/// ```
/// let mut options = holdback::wire::Options::default();
/// options.choices = Some(2);                    // the request said `"n": 2`
/// options.matching.include_stop = true.into();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How text is matched: the stop included or not, scopes (an inline `<think>` region).
    pub matching: StreamOptions,
    /// How many choices the request asked for (`n`, `candidateCount`), if that is known: the stream
    /// ends when that many have ended. If more turn up, all of them have to end. If the request
    /// asked for one, a frame with one choice is of that choice, whatever number it says: some
    /// servers count their chunks there.
    pub choices: Option<u32>,
    /// Characters at the beginning of each choice's text that pass unread: the prompt's length when
    /// the request said `echo`.
    pub skip_chars: u64,
    /// Match in reasoning texts too, each a text of its own.
    pub cut_reasoning: bool,
    /// Where a match is told beside the provider's own fields.
    pub stop_field: StopField,
    /// What happens after the last match.
    pub on_match: OnMatch,
    /// What happens to held text at an upstream's error.
    pub on_error: OnError,
    /// What happens to a frame that cannot be read.
    pub on_malformed: OnMalformed,
    /// What happens to a frame that could not be placed.
    pub on_unread: OnUnread,
    /// The longest frame, in bytes; an endless line is refused beyond it. Images and audio come in
    /// one frame, so the default is 16 MiB.
    pub max_frame_bytes: usize,
    /// The largest number of choices or content blocks in one stream (128).
    pub max_choices: usize,
    /// Bytes of log-probabilities held back together with their text (16 MiB).
    pub max_held_bytes: usize,
    /// Bytes of text kept for providers that repeat the whole text at the end: the Responses API,
    /// TGI (16 MiB).
    pub max_text_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            matching: StreamOptions::default(),
            choices: None,
            skip_chars: 0,
            cut_reasoning: false,
            stop_field: StopField::default(),
            on_match: OnMatch::default(),
            on_error: OnError::default(),
            on_malformed: OnMalformed::default(),
            on_unread: OnUnread::default(),
            max_frame_bytes: 16 * MIB,
            max_choices: 128,
            max_held_bytes: 16 * MIB,
            max_text_bytes: 16 * MIB,
        }
    }
}
