//! A client of every dialect, written from the providers' descriptions with a JSON parser: it
//! shares nothing with the cutter.
#![allow(dead_code)] // each test file uses its own part

use std::fs;

use serde_json::Value;

/// A recorded stream and what is known about it.
pub(crate) struct Recorded {
    pub name: String,
    pub dialect: String,
    pub case: String,
    pub stops: Vec<String>,
    /// The upstream's whole text.
    pub text: String,
    /// The text up to the stop, and the stop, if there is one in it.
    pub cut: Option<(String, String)>,
    pub body: Vec<u8>,
}

pub(crate) fn recorded() -> Vec<Recorded> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire");
    let list: Vec<Value> =
        serde_json::from_slice(&fs::read(format!("{folder}/streams.json")).unwrap()).unwrap();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let recorded: Vec<Recorded> = list
        .iter()
        .map(|row| Recorded {
            name: word(&row["name"]),
            dialect: word(&row["dialect"]),
            case: word(&row["case"]),
            stops: row["stops"].as_array().unwrap().iter().map(word).collect(),
            text: word(&row["text"]),
            cut: row["cut"].as_object().map(|cut| (word(&cut["text"]), word(&cut["stop"]))),
            body: fs::read(format!("{folder}/streams/{}.txt", row["name"].as_str().unwrap()))
                .unwrap(),
        })
        .collect();
    assert_eq!(recorded.len(), 43);
    recorded
}

/// What a client has read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    pub text: String,
    pub texts: usize,
    /// The whole text where the provider says it again.
    pub repeats: Vec<String>,
    pub ended: bool,
    /// The provider's word for an end by a stop string.
    pub stopped: bool,
    /// This dialect tells which stop, and which.
    pub names_stop: bool,
    pub stop: Option<String>,
    pub usage: Option<Value>,
    /// Words that say why, in order.
    pub reasons: Vec<String>,
}

/// Data of all events, JSON or not.
pub(crate) fn events(dialect: &str, body: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(body).unwrap();
    if dialect.starts_with("ollama") {
        return text.lines().map(str::to_owned).collect();
    }
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    assert!(text.ends_with("\n\n") || text.is_empty(), "the last event is complete: {text:?}");
    let data = |block: &str| {
        let lines: Vec<&str> = block
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    text.split("\n\n").filter_map(data).collect()
}

pub(crate) fn read(dialect: &str, body: &[u8]) -> Answer {
    let mut answer = Answer {
        names_stop: !matches!(
            dialect,
            "gemini"
                | "ollama.chat"
                | "ollama.generate"
                | "tgi"
                | "openai.responses"
                | "cohere.chat"
        ),
        ..Answer::default()
    };
    for data in events(dialect, body) {
        assert!(
            !answer.ended || matches!(dialect, "gemini"),
            "{dialect}: nothing follows the end: {data}"
        );
        if data == "[DONE]" {
            answer.ended = true;
            continue;
        }
        let event: Value =
            serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}"));
        answer.take(dialect, &event);
    }
    answer
}

impl Answer {
    fn say(&mut self, text: &Value) {
        if let Some(text) = text.as_str() {
            self.text += text;
            self.texts += 1;
        }
    }

    fn reason(&mut self, reason: &Value, stops: &[&str]) {
        if let Some(reason) = reason.as_str() {
            self.reasons.push(reason.to_owned());
            self.stopped = stops.contains(&reason);
        }
    }

    fn name(&mut self, stop: &Value) {
        if let Some(stop) = stop.as_str().filter(|stop| !stop.is_empty()) {
            self.stop = Some(stop.to_owned());
        }
    }

    fn take(&mut self, dialect: &str, event: &Value) {
        match dialect {
            "openai.chat" | "openai.completions" => {
                for choice in event["choices"].as_array().unwrap() {
                    self.say(if dialect == "openai.chat" {
                        &choice["delta"]["content"]
                    } else {
                        &choice["text"]
                    });
                    self.reason(&choice["finish_reason"], &["stop", "stop_sequence"]);
                    self.name(&choice["stop_reason"]);
                }
                if event["usage"].is_object() {
                    self.usage = Some(event["usage"].clone());
                }
            }
            "openai.responses" => {
                let repeat = |part: &Value| part["text"].as_str().unwrap().to_owned();
                match event["type"].as_str().unwrap() {
                    "response.output_text.delta" => self.say(&event["delta"]),
                    "response.output_text.done" => self.repeats.push(repeat(event)),
                    "response.content_part.done" => self.repeats.push(repeat(&event["part"])),
                    "response.output_item.done" => {
                        self.repeats.push(repeat(&event["item"]["content"][0]));
                    }
                    "response.completed" | "response.incomplete" => {
                        let response = &event["response"];
                        self.repeats.push(repeat(&response["output"][0]["content"][0]));
                        self.reason(&response["status"], &["completed"]);
                        assert_eq!(
                            event["type"],
                            format!("response.{}", response["status"].as_str().unwrap())
                        );
                        self.usage = Some(response["usage"].clone());
                        self.ended = true;
                        assert_eq!(self.repeats.len(), 4);
                    }
                    _ => {}
                }
            }
            "anthropic.messages" => match event["type"].as_str().unwrap() {
                "content_block_delta" => self.say(&event["delta"]["text"]),
                "message_delta" => {
                    self.reason(&event["delta"]["stop_reason"], &["stop_sequence"]);
                    self.name(&event["delta"]["stop_sequence"]);
                    self.usage = Some(event["usage"].clone());
                }
                "message_stop" => self.ended = true,
                _ => {}
            },
            "cohere.chat" => match event["type"].as_str().unwrap() {
                "content-delta" => self.say(&event["delta"]["message"]["content"]["text"]),
                "message-end" => {
                    self.reason(&event["delta"]["finish_reason"], &["STOP_SEQUENCE"]);
                    self.usage = Some(event["delta"]["usage"].clone());
                    self.ended = true;
                }
                _ => {}
            },
            "gemini" => {
                for candidate in event["candidates"].as_array().unwrap() {
                    self.say(&candidate["content"]["parts"][0]["text"]);
                    self.reason(&candidate["finishReason"], &["STOP"]);
                    self.ended |= candidate["finishReason"].is_string();
                }
                self.usage = Some(event["usageMetadata"].clone());
            }
            "ollama.chat" | "ollama.generate" => {
                self.say(if dialect == "ollama.chat" {
                    &event["message"]["content"]
                } else {
                    &event["response"]
                });
                self.reason(&event["done_reason"], &["stop"]);
                self.ended |= event["done"] == true;
                self.usage = Some(event["eval_count"].clone());
            }
            "llama.cpp" => {
                self.say(&event["content"]);
                self.reason(&event["stop_type"], &["word"]);
                self.name(&event["stopping_word"]);
                self.ended |= event["stop"] == true;
                self.usage = Some(event["timings"].clone());
            }
            "tgi" => {
                if event["token"]["special"] == false {
                    self.say(&event["token"]["text"]);
                }
                if let Some(text) = event["generated_text"].as_str() {
                    self.repeats.push(text.to_owned());
                    self.ended = true;
                }
                self.reason(&event["details"]["finish_reason"], &["stop_sequence"]);
                self.usage = Some(event["details"]["generated_tokens"].clone());
            }
            _ => unreachable!(),
        }
    }
}

/// A generator of numbers good enough to break things with.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides.max(1)
    }
}

/// Damages a body: bytes changed, dropped, doubled, blocks swapped in from elsewhere.
pub(crate) fn damage(body: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = body.to_vec();
    for _ in 0..=dice.roll(4) {
        let (at, len) = (dice.roll(bytes.len()), dice.roll(30));
        let end = (at + len).min(bytes.len());
        match dice.roll(6) {
            0 => bytes[at] = b"\"\\{}[],:\n\r \x00\xff\xe4u012"[dice.roll(18)],
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => {
                let from = dice.roll(other.len());
                bytes.splice(at..end, other[from..(from + len).min(other.len())].iter().copied());
            }
            4 => {
                let piece: &[u8] =
                    [&b"\\ud83d"[..], b"\\ude00", b"null", b"\"error\":1,", b"\r", b"Obs", b"END"]
                        [dice.roll(7)];
                bytes.splice(at..at, piece.iter().copied());
            }
            _ => bytes.truncate(end.max(1)),
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    bytes
}
