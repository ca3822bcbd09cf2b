//! What scripts find, and what they do not.

use super::harness::Case;
use crate::script::ErrorKind;

fn prints(text: &str) -> Vec<String> {
    Case::new().prints(text).unwrap_or_else(|error| panic!("{error}"))
}

fn fails(text: &str) -> String {
    Case::new().prints(text).expect_err("this script must not load").to_string()
}

#[test]
fn nothing_that_reads_files_or_clocks_is_there() {
    for name in ["os", "io", "dofile", "loadfile", "package", "collectgarbage", "warn", "_G"] {
        let error = fails(&format!("local x = {name}"));
        assert!(error.contains(&format!("`{name}` is not available")), "{error}");
    }
    assert_eq!(prints("print(string.dump)"), ["nil"]);
}

#[test]
fn libraries_and_strings_cannot_be_changed() {
    for text in [
        "string.upper = function() end",
        "table.sort = nil",
        "math.pi = 3",
        "local ln = require 'lunation' ln.loop = 1",
        "local ln = require 'lunation' ln.log.info = 1",
        "getmetatable('').__index.upper = nil",
        "setmetatable(string, {})",
        "rawset(string, 'upper', 1)",
        "rawset(ln, 'loop', 1)",
    ] {
        fails(text);
    }
    assert_eq!(prints("print(getmetatable(''), ('x'):upper())"), ["false\tX"]);
}

#[test]
fn bytecode_is_refused() {
    assert_eq!(prints("print(load('\\27Lua'))")[0].split('\t').next(), Some("nil"));
    assert_eq!(prints("print(load('return 1 + 1')())"), ["2"]);
    let error = Case::new().file("m.lua", b"\x1bLuaxx").prints("require 'm'").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Encoding);
}

#[test]
fn finalizers_and_closers_of_scripts_are_refused() {
    for name in ["__gc", "__close"] {
        let error = fails(&format!("setmetatable({{}}, {{ {name} = function() end }})"));
        assert!(error.starts_with(&format!("loop.lua:1: {name} is not available")), "{error}");
    }
}

#[test]
fn closers_that_are_smuggled_in_later_never_run() {
    // They would run inside of the hook that ends a script, on a stack that is half gone.
    let smuggled = "local mt = {} local t = setmetatable({}, mt) mt.__close = function() while true do end end";
    for body in ["do local x <close> = t while true do end end", "for _ in function() return 1 end, nil, nil, t do end"]
    {
        let error = fails(&format!("{smuggled}\n{body}"));
        assert!(error.starts_with("loop.lua:2: variable '") && error.contains("non-closable"), "{error}");
    }
    let again = format!("{smuggled}\nsetmetatable({{}}, mt)");
    assert!(fails(&again).contains("__close is not available"));
}

#[test]
fn metatables_work_as_everywhere() {
    let text = "local C = {} C.__index = C function C.new(n) return setmetatable({ n = n }, C) end function C:get() return self.n end
        local D = setmetatable({}, { __index = C }) D.__index = D
        print(C.new(1):get(), setmetatable({ n = 2 }, D):get(), getmetatable(C.new(1)) == C)
        local mt = {} local t = setmetatable({}, mt) print(t.x)
        mt.__index = function(_, k) return k .. '!' end print(t.x) mt.__index = { x = 'table' } print(t.x)
        t.y = 1 mt.__newindex = function(t, k, v) rawset(t, k, v * 2) end t.z = 2 print(t.y, t.z)
        local v = { __add = function(a, b) return 'sum' end, __eq = function() return true end, __len = function() return 7 end,
          __call = function(_, a) return a end, __tostring = function() return 'v' end, __metatable = 'hidden' }
        local a, b = setmetatable({}, v), setmetatable({}, v)
        print(a + b, a == b, #a, a(5), tostring(a), getmetatable(a), pcall(setmetatable, a, {}))
        print(getmetatable(setmetatable(setmetatable({}, mt), nil)))";
    assert_eq!(
        prints(text),
        [
            "1\t2\ttrue",
            "nil",
            "x!",
            "table",
            "1\t4",
            "sum\ttrue\t7\t5\tv\thidden\tfalse\tloop.lua:10: cannot change a protected metatable",
            "nil"
        ]
    );
}

#[test]
fn pairs_goes_in_the_order_of_the_keys() {
    let text = "local t = { b = 1, a = 2, [3] = 3, [1] = 4, [true] = 5, c = 6 } local s = {}
        for k, v in pairs(t) do s[#s + 1] = tostring(k) .. '=' .. v end print(table.concat(s, ' '))";
    for _ in 0..3 {
        assert_eq!(prints(text), ["1=4 3=3 a=2 b=1 c=6 true=5"]);
    }
    assert_eq!(
        prints("local t = { b = 1, a = 2 } local k, v = next(t) print(k, v) print(next(t, k)) print(next(t, 'b'))"),
        ["a\t2", "b\t1", "nil"]
    );
    assert_eq!(
        prints("local t = { a = 1, b = 2, c = 3 } for k in pairs(t) do t[k] = nil print(k) end"),
        ["a", "b", "c"]
    );
    assert_eq!(
        prints(
            "local t = setmetatable({}, { __pairs = function() return function(_, k) if not k then return 1, 2 end end end }) for k, v in pairs(t) do print(k, v) end"
        ),
        ["1\t2"]
    );
    let error = fails("local t = { [{}] = 1, [{}] = 2 }\nfor k in pairs(t) do print(k) end");
    assert!(error.starts_with("loop.lua:2: a table with more than one table"), "{error}");
    assert_eq!(prints("for k in pairs(string) do if k == 'upper' then print(k) end end"), ["upper"]);
}

#[test]
fn nothing_shows_an_address_or_a_seed() {
    let text = "local t, f = {}, function() end print(t, f, t) print(('%s'):format(t)) print(math.random(1000000))
        local list = {} for i = 1, 500 do list[i] = { key = i % 3, at = i } end
        table.sort(list, function(a, b) return a.key < b.key end)
        for i = 2, 500 do assert(list[i - 1].key < list[i].key or list[i - 1].at < list[i].at) end";
    let first = prints(text);
    assert_eq!(first[0], "table: #1\tfunction: #2\ttable: #1");
    assert_eq!(first[1], "table: #1");
    assert_eq!(first, prints(text));
    let error = fails("print(('%p'):format({}))");
    assert!(error.contains("no %p"), "{error}");
    let error = fails("math.randomseed()");
    assert!(error.contains("whole number"), "{error}");
}

#[test]
fn sorting_forgives_a_comparison_that_contradicts_itself() {
    prints("local t = {} for i = 1, 300 do t[i] = i * 7919 % 300 end table.sort(t, function() return true end)");
    assert_eq!(prints("local t = { 3, 1, 2 } table.sort(t) print(table.concat(t, ' '))"), ["1 2 3"]);
    assert_eq!(
        prints("local t = { 'b', 'a' } table.sort(t, function(x, y) return x > y end) print(t[1], t[2])"),
        ["b\ta"]
    );
    let error = fails("table.sort { 1, 'a' }");
    assert!(error.contains("attempt to compare"), "{error}");
}

#[test]
fn a_name_that_nobody_declared_is_an_error_at_its_line() {
    let error = fails("local x = 1\nfunction helper() end");
    assert!(error.starts_with("loop.lua:2: `helper` is not declared: write `local helper = …`"), "{error}");
    let error = fails("local x = 1\nprnit(x)");
    assert!(error.starts_with("loop.lua:2: `prnit` is not declared; did you mean `print`?"), "{error}");
    let error = fails("print = 1");
    assert!(error.starts_with("loop.lua:1: `print` belongs to lunation"), "{error}");
}

#[test]
fn the_lines_of_a_script_with_a_shebang_are_its_own() {
    let error = fails("#!/usr/bin/env lunation\nlocal x = nil\nprint(x.y)");
    assert!(error.starts_with("loop.lua:3: attempt to index a nil value (local 'x')"), "{error}");
}

#[test]
fn both_ways_to_the_module_are_the_same() {
    assert_eq!(
        prints("print(require 'lunation' == ln, lunation == ln, ln.VERSION, ln.API)"),
        [format!("true\ttrue\t{}\t1", env!("CARGO_PKG_VERSION"))]
    );
}

#[test]
fn names_of_later_steps_say_so() {
    let error = fails("local ln = require 'lunation'\nlocal n = ln.network { }");
    assert!(
        error.starts_with("loop.lua:2: lunation 0.1.0 has no `ln.network` yet; ln has: API, VERSION, agent"),
        "{error}"
    );
    let error = fails("ln.git.worktree {}");
    assert!(error.contains("has no `ln.git.worktree` yet; ln.git has: branch, diff, head, log, status"), "{error}");
    let error = fails("ln.agnet 'claude'");
    assert!(error.contains("ln has no `agnet`; did you mean `agent`?"), "{error}");
    let error = fails("ln.agent('claude'):ladderr { 'x' }");
    assert!(error.contains("an agent has no `ladderr`; did you mean `ladder`?"), "{error}");
}

#[test]
fn input_is_frozen_and_unknown_keys_are_nil() {
    let case =
        || Case::new().options(|o| o.input = serde_json::json!({ "nonce": "n", "list": [1, 2], "deep": { "x": 1 } }));
    assert_eq!(
        case().prints("print(ln.input.nonce, ln.input.other, #ln.input.list, ln.input.deep.x)").unwrap(),
        ["n\tnil\t2\t1"]
    );
    case().prints("ln.input.nonce = 2").unwrap_err();
}

#[test]
fn names_of_the_embedder_must_be_free() {
    for name in ["git.x", "loop", "a b", "1.x", "x.y.z", ""] {
        let mut options = crate::script::VmOptions::default();
        options.functions.push(crate::script::HostFunction {
            name: name.into(),
            doc: String::new(),
            call: std::sync::Arc::new(|_| Box::pin(async { Ok(serde_json::Value::Null) })),
        });
        let error = crate::script::Vm::start(options).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Options, "{name}: {error}");
    }
}

#[test]
fn metatables_of_objects_are_hidden() {
    assert_eq!(
        prints("print(getmetatable(ln.agent 'claude'), getmetatable(ln), getmetatable(string))"),
        ["false\tfalse\tfalse"]
    );
    for text in ["ln.agent('claude').name = 1", "table.insert(ln.input, 1)", "table.sort(ln.input)"] {
        fails(text);
    }
}

#[test]
fn json_goes_both_ways_whole() {
    assert_eq!(
        prints(
            "local t = ln.json.decode('{\"b\":[1,2.5,null],\"a\":{},\"n\":null,\"e\":[]}') print(t.n, t.b[3] == ln.json.null) print(ln.json.encode(t))"
        ),
        ["nil\ttrue", "{\"a\":{},\"b\":[1,2.5,null],\"e\":[]}"]
    );
    for (text, says) in [
        ("ln.json.encode { 1, nil, 3 }", "a list with a hole at 2"),
        ("ln.json.encode { 1, x = 2 }", "mixes a list with the named key `x`"),
        ("ln.json.encode { f = print }", "`f` is a function"),
        ("ln.json.encode(0/0)", "JSON does not have"),
        ("local t = {} t.t = t ln.json.encode(t)", "contains itself"),
        ("ln.json.decode '{'", "this is no JSON"),
        ("ln.json.decode(nil)", "wants a string, got nil"),
    ] {
        let error = fails(text);
        assert!(error.starts_with("loop.lua:1: ") && error.contains(says), "{error}");
    }
}

#[test]
fn the_default_policy_is_there_to_be_used() {
    assert_eq!(prints("print(ln.decide.default.name, type(ln.decide.default.decide))"), ["default\tfunction"]);
}

#[test]
fn formats_and_plain_lines_can_be_logged() {
    assert_eq!(
        prints("ln.log.info('100%') ln.log.warn('%d of %s', 1, { 1 } and 'x') print(nil, 1, 'a')"),
        ["100%", "1 of x", "nil\t1\ta"]
    );
    let error = fails("local x\nln.log.info('%d', 'x')");
    assert!(
        error.starts_with("loop.lua:2: bad argument #2 to '") && error.contains("number expected, got string"),
        "{error}"
    );
}
