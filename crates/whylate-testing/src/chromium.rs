//! Debian's Chromium without a screen, spoken to over a pipe.
//!
//! The DevTools protocol in its simplest form: JSON messages that end with a zero byte, on the file
//! descriptors 3 and 4 of the browser. Everything the page says, asks and violates is kept.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::until;

/// A browser on a shared machine may take its time; this says that it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// After this long without a word, nothing more is coming.
const SILENCE: Duration = Duration::from_millis(400);

/// A browser with one page.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    events: VecDeque<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty page.
    pub fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let words = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                     --disable-background-networking --disable-component-update --disable-sync \
                     --disable-dev-shm-usage --remote-debugging-pipe";
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(program)
            .args(words.split_whitespace())
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            loop {
                let mut message = Vec::new();
                match output.read_until(0, &mut message) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => message.pop(),
                };
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let events = VecDeque::new();
        let mut browser =
            Self { child, input, messages, session: None, next: 0, events, _profile: profile };
        browser.attach();
        browser
    }

    fn attach(&mut self) {
        let target = self.ask("Target.createTarget", &json!({"url": "about:blank"}));
        let parameters = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.ask("Target.attachToTarget", &parameters);
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.ask(&format!("{domain}.enable"), &json!({}));
        }
    }

    /// Sends a command and waits for its result.
    pub fn ask(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(message.to_string().as_bytes()).unwrap();
        self.input.write_all(&[0]).unwrap();
        self.input.flush().unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|why| {
                panic!("the browser does not answer {method}: {why}");
            });
            if message["id"] == json!(self.next) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push_back(message);
        }
    }

    /// Opens a page of this machine and waits until it is loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        self.ask("Page.navigate", &json!({"url": format!("file://{}", file.display())}));
        loop {
            if self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
                return;
            }
            let event = self.messages.recv_timeout(PATIENCE).expect("the page does not load");
            self.events.push_back(event);
        }
    }

    /// The value of an expression on the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true});
        let result = self.ask("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// A number on the page.
    pub fn number(&mut self, expression: &str) -> f64 {
        let value = self.value(expression);
        value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
    }

    /// Milliseconds from opening a page of ours to its last figure, once that is drawn.
    pub fn drawn(&mut self) -> f64 {
        until("the last figure is drawn", || {
            let drawn = self.value("document.documentElement.dataset.drawn ?? null");
            drawn.as_str().map(|text| text.parse().unwrap())
        })
    }

    /// The window in CSS pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", &size);
    }

    /// What the reader's system asks of pages: `light` or `dark`.
    pub fn scheme(&mut self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.ask("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
    }

    /// Pages opened from now on run scripts, or not.
    pub fn scripts(&mut self, on: bool) {
        self.ask("Emulation.setScriptExecutionDisabled", &json!({"value": !on}));
    }

    /// Presses at one point and releases at another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        let mut mouse = |kind: &str, (x, y): (f64, f64), buttons: u8| {
            let button = if kind == "mouseMoved" && buttons == 0 { "none" } else { "left" };
            let parameters = json!({"type": kind, "x": x, "y": y, "button": button,
                "buttons": buttons, "clickCount": 1});
            self.ask("Input.dispatchMouseEvent", &parameters);
        };
        mouse("mouseMoved", from, 0);
        mouse("mousePressed", from, 1);
        mouse("mouseMoved", (f64::midpoint(from.0, to.0), from.1), 1);
        mouse("mouseMoved", to, 1);
        mouse("mouseReleased", to, 0);
    }

    /// Everything the page said since it was opened.
    pub fn heard(&mut self) -> Heard {
        loop {
            match self.messages.recv_timeout(SILENCE) {
                Ok(event) => self.events.push_back(event),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => panic!("the browser has ended"),
            }
        }
        let mut heard = Heard::default();
        for event in &self.events {
            let parameters = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Network.requestWillBeSent" => {
                    heard.requests.push(parameters["request"]["url"].as_str().unwrap().to_owned());
                }
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                    heard.complaints.push(parameters.to_string());
                }
                _ => {}
            }
        }
        heard
    }
}

/// What a page asked for and what it complained of.
#[derive(Debug, Default)]
pub struct Heard {
    pub requests: Vec<String>,
    pub complaints: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
