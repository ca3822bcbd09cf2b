//! Every option of every table, with its default, unit and meaning. What is not here does not exist.

use super::schema::Kind::{
    AnyText, Bool, Bytes, Choice, Command, Data, Duration, Either, Function, Integer, List, ListOrMap, Map,
    Object as Made, PositiveNumber, Table, Text,
};
use super::schema::{Field, Kind, Object, TableSchema, field};

const COUNT: Kind = Integer { min: 1, max: u32::MAX as u64 };
const TEXTS: Kind = List(&Text);

/// `budget = {…}`
pub(in crate::script) static BUDGET: TableSchema = TableSchema {
    class: "Budget",
    written: "budget = { iterations = 10, wall = \"2h\" }",
    doc: "What a run may use; when any of it is used up, no further iteration starts.",
    list: None,
    fields: &[
        field("iterations", COUNT, "iterations").default("10"),
        field("wall", Duration, "time, not counting time asleep; it ends the running turn too").default("\"2h\""),
        field("tokens", Integer { min: 1, max: i64::MAX as u64 }, "tokens, over the turns that tell them"),
        field("cost_usd", PositiveNumber, "US dollars, over the turns that tell them"),
    ],
    later: &[],
    instead: &[("max_iterations", "iterations"), ("max", "iterations"), ("time", "wall"), ("cost", "cost_usd")],
};

/// `breaker = {…}`
pub(in crate::script) static BREAKER: TableSchema = TableSchema {
    class: "Breaker",
    written: "breaker = { failures = 3 }",
    doc: "When to stop a loop that goes nowhere.",
    list: None,
    fields: &[
        field("failures", COUNT, "failed turns in a row").default("3"),
        field("unchanged", COUNT, "iterations without a change in a row; with a ladder 3 times the patience")
            .default("3"),
        field("instant", COUNT, "failed turns of under `instant_s` seconds in a row, with pauses between").default("3"),
        field("instant_s", COUNT, "what counts as instant, in seconds").default("5"),
        field("transient", COUNT, "rate limits, overloads and network errors in a row, with pauses between")
            .default("8"),
        field("thrash", COUNT, "iterations in a row that came to a state (tree and failing count) seen before")
            .default("3"),
        field("diagnosis", Text, "file below the root for the written diagnosis; without it only in the run's record"),
    ],
    later: &[],
    instead: &[],
};

/// `fence = {…}`
pub(in crate::script) static FENCE: TableSchema = TableSchema {
    class: "Fence",
    written: "fence = { allow = { \"src/**\" } }",
    doc: "What the agent may write. The script, its modules and its prompt files are always denied.",
    list: None,
    fields: &[
        field("allow", TEXTS, "globs, as in .gitignore; without it everything"),
        field("deny", TEXTS, "globs; stronger than `allow`"),
        field("ignored", Choice(&["leave", "watch"]), "\"watch\": paths that git ignores are fenced too")
            .default("\"leave\""),
    ],
    later: &[],
    instead: &[],
};

/// `commit = {…}`
pub(in crate::script) static COMMIT: TableSchema = TableSchema {
    class: "Commit",
    written: "commit = { message = \"{id}: {reason}\" }",
    doc: "Commits the result on the current branch; without it nothing is committed.",
    list: None,
    fields: &[field("message", Text, "{id}, {run}, {iterations} and {reason} are filled in").required()],
    later: &[],
    instead: &[],
};

/// `errors = {{…}}` of an agent
pub(in crate::script) static AGENT_ERROR: TableSchema = TableSchema {
    class: "AgentError",
    written: "{ kind = \"usage_limit\", pattern = \"limit reached\" }",
    doc: "A pattern of an agent's own error messages.",
    list: None,
    fields: &[
        field(
            "kind",
            Choice(&[
                "usage_limit",
                "rate_limited",
                "auth",
                "context_overflow",
                "overloaded",
                "server",
                "network",
                "agent_error",
            ]),
            "what it means",
        )
        .required(),
        field("pattern", Text, "regular expression over the error message and the end of stderr; case is ignored")
            .required(),
        field("whole_message", Bool, "also compare with a whole final message").default("false"),
    ],
    later: &[],
    instead: &[],
};

static AGENT_ERRORS: Kind = Table(&AGENT_ERROR);

static AGENT_FIELDS: &[Field] = &[
    field("name", Text, "name in journals and reports; without it the program's"),
    field("model", Text, "fills {model}; without it the agent's own default"),
    field("instructions", Text, "put before every prompt"),
    field("timeout", Duration, "time that one turn may take").default("\"20m\""),
    field("silence", Duration, "time that a turn may be without a byte of output").default("\"10m\""),
    field("settle", Duration, "time to leave by itself after it said that it is done").default("\"5s\""),
    field("grace", Duration, "time between TERM and KILL").default("\"5s\""),
    field("env", Map(&AnyText), "added to the environment"),
    field("pass_env", TEXTS, "names of variables that reach it although they are scrubbed by default"),
    field("prompt_via", Choice(&["stdin", "arg", "file"]), "how the prompt reaches it").default("\"stdin\""),
    field(
        "parse",
        Either(&[Choice(&["text"]), Data("table")]),
        "how its output is read: \"text\", or { json_lines = {…} } as the presets have it",
    )
    .default("\"text\""),
    field("errors", List(&AGENT_ERRORS), "its own error messages, tried before the general ones"),
    field("version", TEXTS, "command that prints its version; recorded in each run"),
    field("install", Text, "what to type to install it; told when the program is not found"),
];

/// `ln.agent{…}`
pub(in crate::script) static AGENT: TableSchema = TableSchema {
    class: "AgentOpts",
    written: "ln.agent{ \"./agent.sh\" }",
    doc: "A command as agent: program and arguments, then options. {model}, {prompt}, {prompt_file}, {workspace} and {tmp} are filled in.",
    list: Some((Text, "program and arguments")),
    fields: AGENT_FIELDS,
    later: &[],
    instead: &[
        ("cmd", "the words themselves: ln.agent{ \"pi\", \"-p\" }"),
        ("command", "the words themselves: ln.agent{ \"pi\", \"-p\" }"),
        ("args", "the words themselves: ln.agent{ \"pi\", \"-p\" }"),
    ],
};

/// `agent:with{…}`
pub(in crate::script) static AGENT_WITH: TableSchema = TableSchema {
    class: "AgentWith",
    written: "agent:with{ model = \"opus\" }",
    doc: "The same agent with other options.",
    list: None,
    fields: AGENT_FIELDS,
    later: &[],
    instead: &[],
};

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
    ],
    later: &["parse", "check", "description", "after", "score", "match"],
    instead: &[
        ("cmd", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("command", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("comand", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("run", "the command itself, first: ln.sensor{ \"cargo test\" }"),
        ("name", "id"),
    ],
};

/// What may stand where a sensor is wanted.
pub(in crate::script) static SENSORISH: Kind = Either(&[Text, Made(Object::Sensor), Table(&SENSOR)]);

/// `slots = { plan = {…} }` of a prompt
pub(in crate::script) static SLOT: TableSchema = TableSchema {
    class: "Slot",
    written: "plan = { file = \"PLAN.md\", max_bytes = \"4KiB\" }",
    doc: "Data of a prompt, marked as data. It goes where {{name}} stands in the file, else after it. The loop itself fills context, feedback, tried, window and notes; for those only max_bytes and keep are given.",
    list: None,
    fields: &[
        field("text", AnyText, "this text"),
        field("file", Text, "a file below the root, read before each iteration; a missing one is an empty slot"),
        field("glob", Text, "files below the root that match, each under its name"),
        field("read", Function("fun(o: lunation.Observation): string"), "asked before each iteration"),
        field("max_bytes", Bytes, "hard cap; what is cut is told").required(),
        field("keep", Choice(&["head", "tail", "both"]), "which end of overlong data is kept").default("\"both\""),
    ],
    later: &[],
    instead: &[("max", "max_bytes"), ("path", "file")],
};

static ONE_SLOT: Kind = Kind::Table(&SLOT);

/// `ln.prompt{…}`
pub(in crate::script) static PROMPT: TableSchema = TableSchema {
    class: "PromptOpts",
    written: "ln.prompt{ file = \"PROMPT.md\" }",
    doc: "A prompt from a file, read once; the file is fenced.",
    list: None,
    fields: &[
        field("file", Text, "beside the script, or else relative to the root").required(),
        field("max_bytes", Bytes, "refuse a file that is longer"),
        field("slots", Map(&ONE_SLOT), "data by names"),
    ],
    later: &[],
    instead: &[("path", "file"), ("text", "the text itself, without ln.prompt: prompt = \"Fix it.\"")],
};

/// `strategy = { n_of = 2 }`
pub(in crate::script) static N_OF: TableSchema = TableSchema {
    class: "NOf",
    written: "strategy = { n_of = 2 }",
    doc: "At least this many.",
    list: None,
    fields: &[field("n_of", COUNT, "how many sensors must pass").required()],
    later: &[],
    instead: &[],
};

/// `ln.complete{…}`
pub(in crate::script) static COMPLETE: TableSchema = TableSchema {
    class: "CompleteOpts",
    written: "ln.complete{ sentinel = \"RALPH COMPLETE\", mode = \"verify\" }",
    doc: "What counts as done. Without `mode`: sensors alone decide where there is no sentinel, both must agree where there is one.",
    list: None,
    fields: &[
        field("sentinel", AnyText, "the exact last line of the agent's final message that says \"done\""),
        field(
            "mode",
            Choice(&["verify", "override", "llm-only"]),
            "who is believed: word and checks, checks alone, word alone (reported as unverified)",
        ),
        field("strategy", Either(&[Choice(&["all", "any"]), Table(&N_OF)]), "how many sensors must pass")
            .default("\"all\""),
    ],
    later: &[],
    instead: &[],
};

/// `ln.loop{…}`
pub(in crate::script) static LOOP: TableSchema = TableSchema {
    class: "LoopOpts",
    written: "ln.loop{…}",
    doc: "A loop: one agent, one prompt, again and again, until its checks hold.",
    list: None,
    fields: &[
        field("id", Text, "name in journals").default("\"loop\""),
        field("agent", Either(&[Text, Made(Object::Agent)]), "a preset's name, or what ln.agent made").required(),
        field(
            "prompt",
            Either(&[AnyText, Made(Object::Prompt), Function("fun(o: lunation.Observation): string")]),
            "the text itself, a file by ln.prompt, or a function that is asked before each iteration",
        )
        .required(),
        field("sensors", ListOrMap(&SENSORISH), "what is checked after each iteration that changed something"),
        field("jobs", COUNT, "how many sensors run at a time").default("1"),
        field(
            "context",
            List(&Command),
            "run once before iteration 1, outside the fence; their output is shown in every prompt",
        ),
        field(
            "fence",
            Either(&[TEXTS, Table(&FENCE)]),
            "what the agent may write; without it everything but the script's own files",
        ),
        field(
            "complete",
            Either(&[Made(Object::Complete), Function("fun(o: lunation.Observation): boolean, string?")]),
            "what counts as done",
        )
        .default("ln.complete.sensors()"),
        field(
            "decide",
            Function("fun(o: lunation.Observation): lunation.Decision, string?"),
            "what to do with an iteration that changed something",
        )
        .default("ln.decide.default.decide"),
        field(
            "on_stall",
            Function("fun(o: lunation.Observation): lunation.Decision?, string?"),
            "what to do with one that changed nothing; nil is a stall",
        ),
        field(
            "on_iteration",
            Function("fun(o: lunation.Observation)"),
            "sees each iteration after it ended; cannot change anything",
        ),
        field("patience", COUNT, "stalls before the ladder is climbed").default("3"),
        field("step_down", COUNT, "good iterations before it is climbed down again").default("2"),
        field("budget", Table(&BUDGET), "limits"),
        field("max_iterations", COUNT, "short for budget = { iterations = … }"),
        field("breaker", Table(&BREAKER), "when to stop a loop that goes nowhere"),
        field("kill_switch", Text, "a file below the root; when it exists the run stops").default("\".lunation/STOP\""),
        field("feedback_bytes", Bytes, "how much feedback a prompt may show").default("\"16KiB\""),
        field("commit", Table(&COMMIT), "commits the result; without it nothing is committed"),
        field(
            "seed",
            Integer { min: 0, max: i64::MAX as u64 },
            "seed of all randomness; without it drawn and recorded",
        ),
    ],
    later: &["after", "workspace", "checkpoint", "receipts", "memory", "slots", "on_max_reached"],
    instead: &[
        ("agents", "agent"),
        ("max", "max_iterations"),
        ("checks", "sensors"),
        ("sensor", "sensors"),
        ("done", "complete"),
        ("sentinel", "complete = ln.complete.sentinel \"RALPH COMPLETE\""),
        ("model", "agent = ln.agent(\"claude\"):with{ model = … }"),
        ("scope", "fence"),
    ],
};

/// `run:iterations{…}`
pub(in crate::script) static ITERATIONS: TableSchema = TableSchema {
    class: "IterationsOpts",
    written: "run:iterations{ max = 10 }",
    doc: "The pump of a loop by hand: the same budgets, breakers, fence and record as ln.loop.",
    list: None,
    fields: &[
        field("id", Text, "name in journals").default("\"loop\""),
        field("max", COUNT, "iterations").default("10"),
        field("wall", Duration, "time, not counting time asleep").default("\"2h\""),
        field("tokens", Integer { min: 1, max: i64::MAX as u64 }, "tokens, over the turns that tell them"),
        field("cost_usd", PositiveNumber, "US dollars, over the turns that tell them"),
        field("fence", Either(&[TEXTS, Table(&FENCE)]), "what the agent may write"),
        field("breaker", Table(&BREAKER), "when to stop"),
        field("kill_switch", Text, "a file below the root; when it exists the run stops").default("\".lunation/STOP\""),
    ],
    later: &["workspace"],
    instead: &[("iterations", "max"), ("max_iterations", "max")],
};

/// A command with options, for `ln.sh`.
pub(in crate::script) static SH: TableSchema = TableSchema {
    class: "ShOpts",
    written: "ln.sh{ \"git\", \"log\", timeout = \"1m\" }",
    doc: "A command. One string is a line for the shell, several are words.",
    list: Some((Text, "a line for the shell, or program and arguments")),
    fields: &[
        field("timeout", Duration, "time that it may take; all its processes end with it").default("\"10m\""),
        field("silence", Duration, "time that it may be without a byte of output"),
        field("cwd", Text, "folder to run in, relative to the root"),
        field("env", Map(&AnyText), "added to the environment"),
    ],
    later: &[],
    instead: &[],
};

/// Every table, in the order of the annotations.
pub(in crate::script) static TABLES: &[&TableSchema] = &[
    &BUDGET,
    &BREAKER,
    &FENCE,
    &COMMIT,
    &AGENT_ERROR,
    &AGENT,
    &AGENT_WITH,
    &SENSOR,
    &SH,
    &SLOT,
    &PROMPT,
    &N_OF,
    &COMPLETE,
    &LOOP,
    &ITERATIONS,
];
