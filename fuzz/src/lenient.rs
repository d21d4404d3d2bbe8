//! What a client would see of a stream: readers that are written from the providers' descriptions
//! and the habits of their clients, with a JSON parser. They share nothing with the cutter.
//!
//! The promise that is checked: with `on_unread="fail"` a client sees no stop, and nothing of what
//! the upstream said after one. Either the cutter says that it cannot cut the stream, or whatever a
//! reader puts together from its output obeys the stops.

use std::collections::BTreeMap;

use holdback::StopSet;
use holdback::wire::{Cutter, Dialect, OnMatch, OnUnread, Options};
use serde_json::Value;

/// How a client finds the JSON of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// By the rules of server-sent events.
    Events,
    /// Each `data:` line by itself, without its blanks.
    DataLines,
    /// Each line is an object.
    Lines,
    /// All of it is one object.
    Whole,
}

pub const READERS: [Reader; 4] = [Reader::Events, Reader::DataLines, Reader::Lines, Reader::Whole];

/// The texts that a client puts together, by what they are of.
pub type Texts = BTreeMap<String, String>;

/// Reads a stream of `dialect` as far as such a client would: to its end, to an error, to what is no
/// JSON.
pub fn visible(dialect: &str, reader: Reader, bytes: &[u8]) -> Texts {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut client = Client { dialect, texts: Texts::new() };
    let mut read = |data: &str| {
        let data = data.trim();
        if data.is_empty() {
            return true;
        }
        match serde_json::from_str::<Value>(data) {
            Ok(event) => client.read(&event),
            Err(_) => false, // the last word, or an exception
        }
    };
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    match reader {
        Reader::Whole => {
            read(text);
        }
        Reader::Lines => {
            let _ = lines.split('\n').all(read);
        }
        Reader::DataLines => {
            let data = |line: &str| {
                let (name, value) = line.trim_start().split_once(':')?;
                name.trim().eq_ignore_ascii_case("data").then(|| value.to_owned())
            };
            let _ = lines.split('\n').filter_map(data).all(|data| read(&data));
        }
        Reader::Events => {
            let mut event: Vec<&str> = Vec::new();
            for line in lines.split('\n').chain([""]) {
                if line.is_empty() {
                    if !event.is_empty() && !read(&event.join("\n")) {
                        break;
                    }
                    event.clear();
                }
                if let Some(value) = line.strip_prefix("data:") {
                    event.push(value.strip_prefix(' ').unwrap_or(value));
                }
            }
        }
    }
    client.texts
}

struct Client<'a> {
    dialect: &'a str,
    texts: Texts,
}

impl Client<'_> {
    /// False at an end or an error: nothing is read after it.
    fn read(&mut self, event: &Value) -> bool {
        if !event["error"].is_null() || event["type"] == "error" {
            return false;
        }
        match self.dialect {
            "openai.chat" | "openai.completions" => {
                for (choice, key) in listed(&event["choices"]) {
                    self.content(&format!("{key} delta"), &choice["delta"]["content"]);
                    self.content(&format!("{key} message"), &choice["message"]["content"]);
                    self.content(&format!("{key} text"), &choice["text"]);
                }
            }
            "gemini" => {
                for (candidate, key) in listed(&event["candidates"]) {
                    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
                        // A part that is no text ends the text before it.
                        let text = part["text"].as_str().filter(|_| part["thought"] != true);
                        self.say(&key, text.unwrap_or("\u{1}"));
                    }
                }
            }
            "ollama.chat" | "ollama.generate" | "llama.cpp" | "tgi" => {
                let text = match self.dialect {
                    "ollama.chat" => &event["message"]["content"],
                    "ollama.generate" => &event["response"],
                    "llama.cpp" => &event["content"],
                    _ if event["token"]["special"] == true => &Value::Null,
                    _ => &event["token"]["text"],
                };
                let key = (self.dialect == "llama.cpp").then(|| number(&event["index"])).flatten();
                self.content(&key.unwrap_or_default(), text);
                if self.dialect == "tgi" {
                    self.repeat(&event["generated_text"]);
                }
                return event["done"] != true && event["stop"] != true;
            }
            "anthropic.messages" => {
                let key = number(&event["index"]).unwrap_or("0".to_owned());
                match event["type"].as_str() {
                    Some("content_block_start") => {
                        self.content(&key, &event["content_block"]["text"]);
                    }
                    Some("content_block_delta") => self.content(&key, &event["delta"]["text"]),
                    Some("content_block_stop") => self.say(&key, "\u{1}"),
                    // Its delta says why the message ended.
                    Some("message_stop" | "message_delta") => return false,
                    _ => {}
                }
            }
            "cohere.chat" => {
                let key = number(&event["index"]).unwrap_or("0".to_owned());
                match event["type"].as_str() {
                    Some("content-start" | "content-delta") => {
                        self.content(&key, &event["delta"]["message"]["content"]["text"]);
                    }
                    Some("content-end") => self.say(&key, "\u{1}"),
                    Some("message-end") => return false,
                    _ => {}
                }
            }
            "openai.responses" => {
                let number = |name: &str| number(&event[name]).unwrap_or("0".to_owned());
                let key = format!("{} {}", number("output_index"), number("content_index"));
                match event["type"].as_str().unwrap_or_default() {
                    "response.output_text.delta" => self.content(&key, &event["delta"]),
                    "response.output_text.done" => {
                        self.say(&key, "\u{1}");
                        self.repeat(&event["text"]);
                    }
                    "response.content_part.done" => self.repeat_part(&event["part"]),
                    "response.output_item.done" => self.repeat_item(&event["item"]),
                    "response.completed" | "response.incomplete" | "response.failed" => {
                        for item in event["response"]["output"].as_array().into_iter().flatten() {
                            self.repeat_item(item);
                        }
                        return false;
                    }
                    _ => {}
                }
            }
            other => unreachable!("{other}"),
        }
        true
    }

    fn say(&mut self, key: &str, text: &str) {
        self.texts.entry(key.to_owned()).or_default().push_str(text);
    }

    fn content(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => self.say(key, text),
            Value::Array(parts) => {
                for part in parts {
                    self.say(key, part["text"].as_str().unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    /// A text that is said once more, whole.
    fn repeat(&mut self, value: &Value) {
        if let Some(text) = value.as_str() {
            let key = format!("again {}", self.texts.len());
            self.say(&key, text);
        }
    }

    fn repeat_part(&mut self, part: &Value) {
        if part["type"] == "output_text" {
            self.repeat(&part["text"]);
        }
    }

    fn repeat_item(&mut self, item: &Value) {
        for part in item["content"].as_array().into_iter().flatten() {
            self.repeat_part(part);
        }
    }
}

/// The objects of a list, by their numbers, or their places.
fn listed(list: &Value) -> impl Iterator<Item = (&Value, String)> {
    list.as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(_, choice)| choice.is_object())
        .map(|(place, choice)| (choice, number(&choice["index"]).unwrap_or(place.to_string())))
}

fn number(value: &Value) -> Option<String> {
    (!value.is_null()).then(|| value.to_string())
}

/// Cuts a stream and holds what every reader sees against what it sees of the upstream's. Gives
/// whether the cutter refused it.
pub fn check(dialect: Dialect, stops: &[&str], on_match: OnMatch, stream: &[u8]) -> bool {
    let set = StopSet::new(stops).expect("valid stops");
    let mut options = Options::default();
    options.on_unread = OnUnread::Fail;
    options.on_match = on_match;
    let mut cutter = Cutter::new(dialect, &set, options).expect("options that go together");
    let mut out = Vec::new();
    let result = cutter.feed(stream, &mut out).and_then(|()| cutter.finish(&mut out));
    for reader in READERS {
        let before = visible(dialect.name(), reader, stream);
        let after = visible(dialect.name(), reader, &out);
        for (key, text) in &after {
            for stop in stops {
                assert!(
                    !text.contains(stop),
                    "{dialect}: {reader:?} sees {stop:?} in {key:?}: {text:?}\nof\n{}\nas\n{}",
                    String::from_utf8_lossy(stream),
                    String::from_utf8_lossy(&out)
                );
            }
            // What is said again may be cut to another text.
            let Some(came) = before.get(key).filter(|_| !key.starts_with("again")) else {
                continue;
            };
            // What is held leaves before an error: the beginning of a stop.
            let more = |stop: &str| if result.is_err() { stop.len() - 1 } else { 0 };
            let first = stops.iter().filter_map(|stop| Some(came.find(stop)? + more(stop))).min();
            if let Some(first) = first.filter(|_| came.starts_with(text.as_str())) {
                assert!(
                    text.len() <= first,
                    "{dialect}: {reader:?} sees more than it may of {key:?}: {text:?}\nof\n{}",
                    String::from_utf8_lossy(stream)
                );
            }
        }
    }
    result.is_err()
}

/// The data: dialect, flags, then the stream.
pub fn lenient(data: &[u8]) {
    let [dialect, flags, stream @ ..] = data else { return };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let stops: &[&str] = [&["END"][..], &["\n\nUser:", "ab"]][usize::from(flags & 1)];
    let on_match = if flags & 2 != 0 { OnMatch::Drain } else { OnMatch::Cancel };
    check(dialect, stops, on_match, stream);
}
