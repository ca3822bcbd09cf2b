//! Objects with methods, in the words of the annotations.

use crate::script::bindings::Signature;

/// One class of objects.
pub(super) struct Object {
    pub(super) class: &'static str,
    pub(super) parent: Option<&'static str>,
    pub(super) doc: &'static str,
    pub(super) fields: &'static [(&'static str, &'static str, &'static str)],
    pub(super) methods: &'static [(&'static str, Signature)],
}

const NOTE: &[(&str, &str)] = &[("note?", "string")];

pub(super) static OBJECTS: &[Object] = &[
    Object {
        class: "Agent",
        parent: None,
        doc: "An agent, or a ladder of them.",
        fields: &[("name", "string", "the preset's or program's name")],
        methods: &[
            (
                "with",
                Signature {
                    doc: "The same agent with other options; for a ladder, on every rung.",
                    params: &[("opts", "lunation.AgentWith")],
                    returns: Some("lunation.Agent"),
                },
            ),
            (
                "ladder",
                Signature {
                    doc: "A ladder, weakest first: models of this agent, or other agents. It is climbed after `patience` stalls.",
                    params: &[("rungs", "(string|lunation.Agent)[]")],
                    returns: Some("lunation.Agent"),
                },
            ),
        ],
    },
    Object { class: "Sensor", parent: None, doc: "A check.", fields: &[("id", "string", "its name")], methods: &[] },
    Object {
        class: "Sensors",
        parent: None,
        doc: "Checks that are read together.",
        fields: &[],
        methods: &[(
            "sense",
            Signature {
                doc: "Reads them all, now. Not while the script is loaded, and not in a loop's own functions.",
                params: &[("ws?", "lunation.Workspace")],
                returns: Some("lunation.Sense"),
            },
        )],
    },
    Object {
        class: "Prompt",
        parent: None,
        doc: "A prompt that was read from a file.",
        fields: &[("file", "string?", "the file, relative to the root")],
        methods: &[],
    },
    Object { class: "Complete", parent: None, doc: "What counts as done.", fields: &[], methods: &[] },
    Object {
        class: "Runnable",
        parent: None,
        doc: "A loop that can be run: what a script returns.",
        fields: &[("id", "string", "its name in journals")],
        methods: &[],
    },
    Object {
        class: "Workspace",
        parent: None,
        doc: "A tree that agents work in.",
        fields: &[("path", "string", "its root")],
        methods: &[],
    },
    Object {
        class: "Policy",
        parent: None,
        doc: "A named way to decide.",
        fields: &[
            ("name", "string", ""),
            ("patience?", "integer", ""),
            ("decide", "fun(o: lunation.Observation): lunation.Decision, string?", ""),
        ],
        methods: &[],
    },
    Object {
        class: "Iteration",
        parent: Some("Observation"),
        doc: "The open iteration of a loop by hand: its fields are the observation as of the last step.",
        fields: &[],
        methods: &[
            (
                "turn",
                Signature {
                    doc: "One turn of an agent. Slots are data that is put after the prompt, marked as data.",
                    params: &[
                        ("agent", "string|lunation.Agent"),
                        ("prompt", "string|lunation.Prompt"),
                        ("slots?", "table<string, string>"),
                    ],
                    returns: Some("lunation.Turn"),
                },
            ),
            (
                "sense",
                Signature {
                    doc: "Reads sensors on the tree as it is.",
                    params: &[("sensors", "lunation.Sensors")],
                    returns: Some("lunation.Sense"),
                },
            ),
            ("keep", Signature { doc: "Keeps what it did.", params: NOTE, returns: None }),
            (
                "rollback",
                Signature {
                    doc: "Puts the tree back; the note is told to later prompts.",
                    params: NOTE,
                    returns: None,
                },
            ),
            ("stall", Signature { doc: "Counts as no progress; the tree stays.", params: NOTE, returns: None }),
            (
                "done",
                Signature {
                    doc: "Keeps what it did and ends the loop as complete; verified when the sensors hold on this very tree.",
                    params: &[("reason?", "string")],
                    returns: Some("lunation.Result"),
                },
            ),
        ],
    },
    Object {
        class: "Run",
        parent: None,
        doc: "What a script's function is given.",
        fields: &[
            ("workspace", "lunation.Workspace", "the tree"),
            ("input", "table<string, any>", "the same as ln.input"),
        ],
        methods: &[
            (
                "iterations",
                Signature {
                    doc: "The pump: `for it in run:iterations{ max = 10 } do … end`. It ends when a limit is reached.",
                    params: &[("opts?", "lunation.IterationsOpts")],
                    returns: Some("fun(): lunation.Iteration?"),
                },
            ),
            (
                "stop",
                Signature {
                    doc: "Ends the run by the script's own rule; a limit that was reached stays the reason.",
                    params: &[("reason?", "string")],
                    returns: Some("lunation.Result"),
                },
            ),
        ],
    },
];
