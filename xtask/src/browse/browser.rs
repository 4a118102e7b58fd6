//! Chromium without a window, controlled by the DevTools protocol over two pipes. The control needs
//! no network port and no other library.
//!
//! Messages are JSON and end in a zero byte. The browser reads messages from file descriptor 3 and
//! writes messages to file descriptor 4. A shell connects this program's pipes to these
//! descriptors, since the standard library can set only the first three descriptors of a child.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The names of the browser in the packages of different systems.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// The longest time to wait for the browser. No page here takes a second, but a busy machine may
/// need several seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running browser.
pub(super) struct Browser {
    program: String,
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Value>,
    number: u64,
    profile: PathBuf,
}

/// An open page, and the events in it.
pub(super) struct Page<'b> {
    browser: &'b mut Browser,
    session: String,
    target: String,
    url: String,
    /// The page's errors, and its requests to the network.
    pub(super) troubles: Vec<String>,
}

/// The size and the style in which a page is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) name: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) mobile: bool,
    pub(super) dark: bool,
}

impl Browser {
    /// Starts the browser that `CANDIDE_BROWSER` names. If the variable is not set, starts the
    /// first browser that is found.
    pub(super) fn start() -> Result<Browser, String> {
        let program = find()
            .ok_or("there is no Chromium; install it, or name a browser in CANDIDE_BROWSER")?;
        let profile = env::temp_dir().join(format!("candide-browse-{}", std::process::id()));
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", "sh"])
            .arg(&program)
            // The pages are files of this project, so they need no sandbox. The browser's sandbox
            // does not work for root, and needs features that containers do not have.
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
            ])
            .args([
                "--no-first-run",
                "--disable-background-networking",
                "--disable-extensions",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        let orders = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Browser { program, child, orders, messages, number: 0, profile })
    }

    /// Opens a file and waits until it is loaded.
    pub(super) fn open(&mut self, url: &str, view: View) -> Result<Page<'_>, String> {
        let target = text(
            &self.order("", "Target.createTarget", json!({ "url": "about:blank" }))?["targetId"],
        );
        let attached = self.order(
            "",
            "Target.attachToTarget",
            json!({ "targetId": target, "flatten": true }),
        )?;
        let mut page = Page {
            session: text(&attached["sessionId"]),
            target,
            url: url.to_string(),
            troubles: Vec::new(),
            browser: self,
        };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            page.order(domain, json!({}))?;
        }
        page.order(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": view.width, "height": view.height, "deviceScaleFactor": 1, "mobile": view.mobile }),
        )?;
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        page.order("Emulation.setEmulatedMedia", json!({ "features": features }))?;
        page.order("Page.navigate", json!({ "url": url }))?;
        page.wait_until_loaded()?;
        Ok(page)
    }

    fn order(&mut self, session: &str, method: &str, parameters: Value) -> Result<Value, String> {
        let (answer, _) = self.order_and_listen(session, method, parameters)?;
        Ok(answer)
    }

    /// Sends an order to the browser. Returns the answer, and the events that came before the
    /// answer.
    fn order_and_listen(
        &mut self,
        session: &str,
        method: &str,
        parameters: Value,
    ) -> Result<(Value, Vec<Value>), String> {
        self.number += 1;
        let number = self.number;
        let mut order = json!({ "id": number, "method": method, "params": parameters });
        if !session.is_empty() {
            order["sessionId"] = session.into();
        }
        let program = &self.program;
        let gone = |error| format!("{program} is gone, or never was: {error}");
        self.orders.write_all(order.to_string().as_bytes()).map_err(gone)?;
        self.orders.write_all(&[0]).and_then(|()| self.orders.flush()).map_err(gone)?;
        let mut events = Vec::new();
        loop {
            let message = self.message(method)?;
            if message["id"] != number {
                events.push(message);
            } else if message["error"].is_object() {
                return Err(format!("{method}: {}", message["error"]["message"]));
            } else {
                return Ok((message["result"].clone(), events));
            }
        }
    }

    fn message(&mut self, waiting_for: &str) -> Result<Value, String> {
        self.messages.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => format!("{} does not answer: {waiting_for}", self.program),
            RecvTimeoutError::Disconnected => {
                format!("{} has ended, or never was: {waiting_for}", self.program)
            }
        })
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended already. Then there is nothing to do.
        let _ = self.order("", "Browser.close", json!({}));
        let asked = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && asked.elapsed() < Duration::from_secs(5)
        {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

impl Page<'_> {
    /// Evaluates an expression in the page.
    pub(super) fn evaluate(&mut self, script: &str) -> Result<Value, String> {
        let answer =
            self.order("Runtime.evaluate", json!({ "expression": script, "returnByValue": true }))?;
        match &answer["exceptionDetails"] {
            Value::Null => Ok(answer["result"]["value"].clone()),
            thrown => {
                Err(format!("the check does not run: {}", thrown["exception"]["description"]))
            }
        }
    }

    /// Returns a picture of the whole page: a PNG, in base 64.
    pub(super) fn picture(&mut self) -> Result<String, String> {
        let answer = self.order(
            "Page.captureScreenshot",
            json!({ "format": "png", "captureBeyondViewport": true }),
        )?;
        Ok(text(&answer["data"]))
    }

    /// Returns the printed page: a PDF, in base 64.
    pub(super) fn print(&mut self) -> Result<String, String> {
        let answer = self.order(
            "Page.printToPDF",
            json!({ "preferCSSPageSize": true, "printBackground": true }),
        )?;
        Ok(text(&answer["data"]))
    }

    pub(super) fn close(self) -> Result<(), String> {
        let target = json!({ "targetId": self.target });
        self.browser.order("", "Target.closeTarget", target).map(drop)
    }

    fn order(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        let (answer, events) = self.browser.order_and_listen(&self.session, method, parameters)?;
        events.iter().for_each(|event| self.note(event));
        Ok(answer)
    }

    fn wait_until_loaded(&mut self) -> Result<(), String> {
        // The browser answers the order to navigate before the page is loaded. This loop handles
        // the events between the answer and the end of loading.
        loop {
            let event = self.browser.message("Page.loadEventFired")?;
            self.note(&event);
            if event["sessionId"] == self.session.as_str()
                && event["method"] == "Page.loadEventFired"
            {
                return Ok(());
            }
        }
    }

    /// Records an event if it is an error of this page or a request of this page to the network.
    fn note(&mut self, event: &Value) {
        if event["sessionId"] != self.session.as_str() {
            return;
        }
        let parameters = &event["params"];
        let trouble = match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                let details = &parameters["exceptionDetails"];
                format!("throws: {} {}", details["text"], details["exception"]["description"])
            }
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                format!("writes to the console: {}", parameters["args"])
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                format!("logs an error: {}", parameters["entry"]["text"])
            }
            Some("Network.requestWillBeSent")
                if parameters["request"]["url"] != self.url.as_str() =>
            {
                format!("asks for {}", parameters["request"]["url"])
            }
            _ => return,
        };
        self.troubles.push(trouble);
    }
}

fn find() -> Option<String> {
    if let Ok(named) = env::var("CANDIDE_BROWSER") {
        return Some(named);
    }
    let folders: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let exists = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    NAMES.iter().copied().find(exists).map(str::to_string)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
