//! Options of everything that senses.

use super::schema::Kind::{
    AnyText, Bool, Choice, Command, Duration, Either, Function, Integer, List, Map, Object as Made, PositiveNumber,
    Table, Text,
};
use super::schema::{Kind, Object, TableSchema, field};

const COUNT: Kind = Integer { min: 1, max: u32::MAX as u64 };
const TEXTS: Kind = List(&Text);
const TEXT_OR_TEXTS: Kind = Either(&[Text, TEXTS]);

/// `service = …`
const SERVICES: Kind = Either(&[Made(Object::Service), List(&Made(Object::Service))]);

/// `parse = …`
const PARSE: Kind = Either(&[
    Made(Object::Parser),
    Function("fun(out: lunation.CmdResult): lunation.Parsed"),
    Choice(&[
        "auto", "off", "libtest", "nextest", "pytest", "go", "jest", "vitest", "mocha", "node", "tap", "junit",
        "cargo", "eslint", "ruff", "tsc", "github", "sarif",
    ]),
]);

/// `ln.sensor{…}`
pub(in crate::script) static SENSOR: TableSchema = TableSchema {
    class: "SensorOpts",
    written: "ln.sensor{ \"cargo test\", timeout = \"10m\" }",
    doc: "A check: exit code 0 is passed; 126, 127 and signals are broken; all else is failed. One string is a line for the shell, several are words.",
    list: Some((Text, "a line for the shell, or program and arguments")),
    fields: &[
        field("id", Text, "name, unique in its loop; without it the command itself"),
        field("fix", Command, "runs after the fence and before the checks; what it changes is fenced too"),
        field("timeout", Duration, "time that it may take; all its processes end with it").default("\"10m\""),
        field("silence", Duration, "time that it may be without a byte of output"),
        field("timeout_is", Choice(&["failed", "broken"]), "what a timeout means").default("\"failed\""),
        field("cwd", Text, "folder to run in, relative to the root"),
        field("env", Map(&AnyText), "added to the environment"),
        field("confirm", COUNT, "how often a result must come out the same before it rolls back or completes; 1: once")
            .default("2"),
        field("cache", Bool, "false: read again even where the same tree was read before").default("true"),
        field(
            "parse",
            PARSE,
            "who counts in its output: a format by name or from ln.parse, a function, \"auto\" for what is recognised for sure, \"off\" for the exit code alone",
        )
        .default("\"auto\""),
        field("report", TEXT_OR_TEXTS, "globs of the files that it writes its report to, relative to the root; without it its output is read"),
        field("min_total", COUNT, "with fewer items than these a pass is red"),
        field("must_match", TEXT_OR_TEXTS, "regular expressions that must each match a line, or a pass is red"),
        field("broken_if", TEXT_OR_TEXTS, "regular expressions of lines that say that the check itself does not work: red becomes broken"),
        field("keep_lines", TEXT_OR_TEXTS, "regular expressions of lines that feedback keeps, whatever is cut"),
        field("threshold", PositiveNumber, "the least `SCORE: n` that passes"),
        field(
            "check",
            Function("fun(ws: lunation.Workspace): boolean, string?"),
            "instead of a command: says whether it holds, and why not",
        ),
        field(
            "hint",
            Either(&[Text, Function("fun(r: lunation.Reading): string?")]),
            "told with a failure: how it is mended",
        ),
        field("after", TEXT_OR_TEXTS, "names of sensors that are read before this one, whatever they say"),
        field("scratch", Bool, "it writes into the tree: it is read alone, and what it wrote is undone before the next one")
            .default("false"),
        field("network", Bool, "false: no network but loopback, or an error where this machine cannot take it away")
            .default("true"),
        field("service", SERVICES, "what must be running meanwhile, from ln.service; its port is in PORT and {port}"),
    ],
    later: &["description"],
    instead: &[
        ("cmd", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("command", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("comand", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("run", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("name", "id"),
        ("services", "service"),
        ("match", "must_match"),
        ("parser", "parse"),
        ("format", "parse"),
        ("score", "threshold"),
    ],
};

/// What may stand where a sensor is wanted.
pub(in crate::script) static SENSORISH: Kind = Either(&[Text, Made(Object::Sensor), Table(&SENSOR)]);

/// `ln.judge{…}`
pub(in crate::script) static JUDGE: TableSchema = TableSchema {
    class: "JudgeOpts",
    written: "ln.judge{ agent = \"claude\", rubric = \"RUBRIC.md\" }",
    doc: "An agent that judges the work by a rubric and ends its answer with `SCORE: n`. It sees the task and the whole change; what it writes is undone.",
    list: None,
    fields: &[
        field("id", Text, "name, unique in its loop").default("\"judge\""),
        field("agent", Either(&[Text, Made(Object::Agent)]), "who judges; of a ladder the first rung").required(),
        field("rubric", Text, "a file beside the script, or else relative to the root; no agent may write it")
            .required(),
        field("task", Text, "what was asked; without it the prompt of the loop"),
        field("threshold", PositiveNumber, "the least score that passes, at most 100").default("80"),
        field("timeout", Duration, "time that it may take; without it the agent's own"),
        field("hint", Text, "told with a failure: how it is mended"),
        field("after", TEXT_OR_TEXTS, "names of sensors that are read before this one"),
    ],
    later: &["model"],
    instead: &[("file", "rubric"), ("min", "threshold"), ("name", "id")],
};

/// `ln.sensor.metric{…}`
pub(in crate::script) static METRIC: TableSchema = TableSchema {
    class: "MetricOpts",
    written: "ln.sensor.metric{ promql = \"up\", url = \"http://localhost:9090\", assert = \"== 1\" }",
    doc: "A metric of a running system: every value of the answer must be as asserted. An empty, partial or stale answer, or one that is no number, is broken, never green.",
    list: None,
    fields: &[
        field("id", Text, "name, unique in its loop; without it the query itself"),
        field("promql", Text, "a query for Prometheus"),
        field("logql", Text, "a query for Loki"),
        field("url", Text, "base address of the service").required(),
        field("assert", Text, "what every value must be: \"< 0.8\", \">= 10 and < 20\"").required(),
        field("range", Duration, "how far back: a range query, of which every sample must hold; without it an instant"),
        field("step", Duration, "distance of two samples of a range").default("\"15s\""),
        field("source", Text, "promql: the selector whose samples must be fresh; without it the query itself"),
        field(
            "fresh",
            Either(&[Text, Duration]),
            "promql: how old samples may be when the sensor starts, or \"any\"; without it they must be taken after that",
        ),
        field("timeout", Duration, "how long a fresh and whole answer is waited for").default("\"2m\""),
        field("headers", Map(&AnyText), "sent with every question"),
        field("token_env", Text, "name of the variable that holds a bearer token"),
        field("hint", Text, "told with a failure: how it is mended"),
        field("after", TEXT_OR_TEXTS, "names of sensors that are read before this one"),
        field("service", SERVICES, "what must be running meanwhile, from ln.service; its port is in {port} of `url`"),
    ],
    later: &[],
    instead: &[("query", "promql or logql"), ("threshold", "assert")],
};

/// `ln.sensor.picture{…}`
pub(in crate::script) static PICTURE: TableSchema = TableSchema {
    class: "PictureOpts",
    written: "ln.sensor.picture{ actual = \"out/page.png\", golden = \"tests/page.png\" }",
    doc: "A picture that must look like another one; no agent may write that.",
    list: None,
    fields: &[
        field("id", Text, "name, unique in its loop; without it the picture's path"),
        field("take", Command, "takes the picture; without it, it is there already"),
        field("actual", Text, "the picture, relative to the root").required(),
        field("golden", Text, "what it must look like, relative to the root").required(),
        field("threshold", PositiveNumber, "the largest share of pixels that may differ, up to 1; without it none"),
        field("tolerance", PositiveNumber, "how much a pixel may differ before it counts, up to 1").default("0.1"),
        field("timeout", Duration, "time that taking it may take").default("\"10m\""),
        field("cwd", Text, "folder to take it in, relative to the root"),
        field("env", Map(&AnyText), "added to the environment"),
        field("hint", Text, "told with a failure: how it is mended"),
        field("after", TEXT_OR_TEXTS, "names of sensors that are read before this one"),
        field("service", SERVICES, "what must be running meanwhile, from ln.service; its port is in PORT and {port}"),
    ],
    later: &[],
    instead: &[("run", "take"), ("expected", "golden"), ("file", "actual")],
};

/// `ready = {…}`
pub(in crate::script) static READY: TableSchema = TableSchema {
    class: "Ready",
    written: "ready = { http = \"/health\" }",
    doc: "When a service can be looked at; one of `http`, `port` and `line`.",
    list: None,
    fields: &[
        field("http", Text, "this path on its port answers with a status below 400"),
        field("port", Bool, "its port takes connections"),
        field("line", Text, "it printed a line that this regular expression matches"),
        field("within", Duration, "how long that may take").default("\"30s\""),
    ],
    later: &[],
    instead: &[("timeout", "within"), ("url", "http"), ("log", "line")],
};

/// `ln.service{…}`
pub(in crate::script) static SERVICE: TableSchema = TableSchema {
    class: "ServiceOpts",
    written: "ln.service{ run = \"npm start\", ready = { http = \"/\" } }",
    doc: "Something that is started for a pass over the sensors that need it, and ended with it. A free port is in PORT and {port}.",
    list: None,
    fields: &[
        field("id", Text, "name; without it the command itself"),
        field("run", Command, "what is started; it stays in the foreground").required(),
        field("ready", Table(&READY), "when it can be looked at; without it when its port takes connections"),
        field("stop", Command, "asks it to end; its processes are ended in any case"),
        field("cwd", Text, "folder to run in, relative to the root"),
        field("env", Map(&AnyText), "added to the environment"),
    ],
    later: &[],
    instead: &[("command", "run"), ("cmd", "run"), ("start", "run")],
};

/// `ln.parse.pattern{…}`
pub(in crate::script) static PATTERN: TableSchema = TableSchema {
    class: "PatternOpts",
    written: "ln.parse.pattern{ failing = \"(\\\\d+) failed\" }",
    doc: "Counts by regular expressions over lines: one with a group takes the number in it, the last match wins; one without counts the lines that match.",
    list: None,
    fields: &[
        field("failing", Text, "failing items; without it the number of `item`s"),
        field("total", Text, "all items"),
        field("passed", Text, "passed items: with `failing` they make the total"),
        field("item", Text, "name of a failing item: its first group"),
    ],
    later: &[],
    instead: &[("failed", "failing"), ("name", "item")],
};
