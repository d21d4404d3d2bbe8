//! `OpenAI` chat completions: text in `choices[].delta.content`, or `message.content` of a whole
//! answer.
#![forbid(unsafe_code)]

use super::openai::{KNOWN, SPEC};
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::framing::Framing;

pub(super) static DIALECT: Entry = Entry {
    name: "openai.chat",
    framing: Framing::Events,
    reserved: "index delta message finish_reason logprobs",
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};
