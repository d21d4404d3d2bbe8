//! The four events that close an answer which is cut: made after the stream's own templates, or
//! after ours where it sent none.
#![forbid(unsafe_code)]

use super::reading::{Object, object};
use super::rewrite::{applied, complete};
use super::{Matched, PART, Responses, Sent};
use crate::wire::context::Context;
use crate::wire::dialect::put;
use crate::wire::edit::Edits;
use crate::wire::json::Span;

impl Responses {
    /// The four closing events, after the stream's own templates.
    pub(super) fn write_end(&mut self, cx: &mut Context<'_>, after: &[u8], matched: &Matched) {
        let Matched { output, content, emitted, reasoning, item_id, closed, .. } = matched;
        if self.item_at.is_some_and(|at| at != *output) {
            self.item.clear();
            self.part.clear();
            self.parts.clear();
        }
        self.sent.of((*output, *content));
        let kind = PART[usize::from(*reasoning)];
        let mut place = b",\"item_id\":".to_vec();
        put::quoted(item_id, &mut place);
        place.extend_from_slice(
            format!(",\"output_index\":{output},\"content_index\":{content}").as_bytes(),
        );

        let mut text_done = place.clone();
        put::field("text", emitted, &mut text_done);
        if !reasoning {
            text_done.extend_from_slice(
                &[b",\"logprobs\":[", self.sent.logprobs.as_slice(), b"]"].concat(),
            );
        }
        if *closed < 1 {
            self.own(cx, &format!("response.{kind}.done"), &text_done, after);
        }

        let part = self.closed_part(kind, emitted);
        if *closed < 2 {
            self.own(
                cx,
                "response.content_part.done",
                &[&place, &b",\"part\":"[..], &part].concat(),
                after,
            );
        }

        if !self.parts.is_empty() {
            self.parts.push(b',');
        }
        self.parts.extend_from_slice(&part);
        let item = self.closed_item(item_id, *reasoning);
        let place = format!(",\"output_index\":{output},\"item\":");
        if *closed < 3 {
            self.own(cx, "response.output_item.done", &[place.as_bytes(), &item].concat(), after);
        }

        if !self.items.is_empty() {
            self.items.push(b',');
        }
        self.items.extend_from_slice(&item);
        let response = self.closed_response(cx, &matched.stop);
        self.own(cx, "response.completed", &[&b",\"response\":"[..], &response].concat(), after);
    }

    fn own(&mut self, cx: &mut Context<'_>, kind: &str, rest: &[u8], after: &[u8]) {
        let number = self.sequence.map_or(0, |last| last + 1);
        self.sequence = Some(number);
        let mut data =
            format!("data: {{\"type\":\"{kind}\",\"sequence_number\":{number}").into_bytes();
        data.extend_from_slice(rest);
        data.push(b'}');
        cx.sink.own(&[format!("event: {kind}").as_bytes(), &data], after);
    }

    fn closed_part(&self, kind: &str, emitted: &[u8]) -> Vec<u8> {
        let whole = Span { start: 0, end: self.part.len() };
        let Sent { annotations, logprobs: sent, .. } = &self.sent;
        let list = |inside: &[u8]| [b"[", inside, b"]"].concat();
        if let Ok(Object { text: Some(text), logprobs, annotations: notes, .. }) =
            object(&self.part, whole)
        {
            let mut edits = Edits::default();
            edits.replace(text, emitted);
            if let Some(logprobs) = logprobs {
                edits.replace(logprobs, &list(sent));
            }
            if let Some(notes) = notes.filter(|_| !annotations.is_empty()) {
                edits.replace(notes, &list(annotations));
            }
            return applied(&self.part, &mut edits);
        }
        let mut part = format!("{{\"type\":\"{kind}\"").into_bytes();
        put::field("text", emitted, &mut part);
        if kind == PART[0] {
            part.extend_from_slice(
                &[
                    b",\"annotations\":",
                    list(annotations).as_slice(),
                    b",\"logprobs\":",
                    &list(sent),
                ]
                .concat(),
            );
        }
        part.push(b'}');
        part
    }

    fn closed_item(&self, item_id: &[u8], reasoning: bool) -> Vec<u8> {
        let whole = Span { start: 0, end: self.item.len() };
        let content = [b"[", self.parts.as_slice(), b"]"].concat();
        if let Ok(item) = object(&self.item, whole) {
            let mut edits = Edits::default();
            match item.list {
                Some(list) => edits.replace(list, &content),
                None => edits
                    .insert(item.span.end - 1, &[b",\"content\":", content.as_slice()].concat()),
            }
            if let Some(status) = item.status {
                edits.replace(status, b"\"completed\"");
            }
            return applied(&self.item, &mut edits);
        }
        let mut item = b"{\"id\":".to_vec();
        put::quoted(item_id, &mut item);
        item.extend_from_slice(if reasoning {
            b",\"type\":\"reasoning\",\"status\":\"completed\",\"summary\":[],\"content\":"
                .as_slice()
        } else {
            b",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":"
        });
        item.extend_from_slice(&content);
        item.push(b'}');
        item
    }

    fn closed_response(&self, cx: &Context<'_>, stop: &[u8]) -> Vec<u8> {
        let whole = Span { start: 0, end: self.response.len() };
        let output = [b"[", self.items.as_slice(), b"]"].concat();
        let mut edits = Edits::default();
        let (template, response) = if let Ok(response) = object(&self.response, whole) {
            (self.response.as_slice(), response)
        } else {
            let template =
                b"{\"id\":\"\",\"object\":\"response\",\"status\":\"completed\",\"output\":[]}";
            (
                template.as_slice(),
                object(template, Span { start: 0, end: template.len() }).unwrap_or_default(),
            )
        };
        match response.list {
            Some(list) => edits.replace(list, &output),
            None => {
                edits.insert(response.span.end - 1, &[b",\"output\":", output.as_slice()].concat());
            }
        }
        complete(cx, template, &response, stop, &mut edits);
        applied(template, &mut edits)
    }
}
