//! `OpenAI`'s older text completions: text in `choices[].text`, the prompt before it when the
//! request said `echo`.
#![forbid(unsafe_code)]

use super::openai::{self, KNOWN};
use crate::wire::choices::Choices;
use crate::wire::dialect::Entry;
use crate::wire::dialect::spec::Spec;
use crate::wire::frame::Slot;
use crate::wire::framing::Framing;

pub(super) static DIALECT: Entry = Entry {
    name: "openai.completions",
    framing: Framing::Events,
    reserved: "index text finish_reason logprobs",
    known: KNOWN,
    engine: || Box::new(Choices::new(&SPEC)),
};

static SPEC: Spec = Spec { slots: &[Slot::Text, Slot::Delta, Slot::Message], ..openai::SPEC };
