//! Where a call that waits may be used: everywhere but where Lua itself cannot wait, and there it says so.

use super::harness::{Case, Outcome};
use crate::script::ScriptError;
use crate::world::ScriptedWorld;

async fn logs(body: &str) -> Result<Vec<String>, ScriptError> {
    logs_with(Case::new(), body).await
}

async fn logs_with(case: Case, body: &str) -> Result<Vec<String>, ScriptError> {
    let text = format!("return function(run)\n{body}\nend");
    let (vm, loaded) = case.load(&text).unwrap_or_else(|error| panic!("{error}"));
    let outcome = Outcome::new(ScriptedWorld::new([]), case.folder.path());
    vm.run(&loaded, outcome.run.clone()).await.map(|_| outcome.logged())
}

#[tokio::test]
async fn calls_wait_in_all_these_places() {
    for body in [
        "print(ln.sh('x').code)",
        "local ok, r = pcall(ln.sh, 'x') print(r.code)",
        "local ok, r = pcall(function() return ln.sh 'x' end) print(r.code)",
        "local ok, r = xpcall(ln.sh, print, 'x') print(r.code)",
        "local function f(...) return ln.sh(...) end print(f('x').code)",
        "local n = 0 for r in function() n = n + 1 if n < 2 then return ln.sh 'x' end end do print(r.code) end",
        "for _ in ipairs { 1 } do print(ln.sh('x').code) end",
        "for _ in pairs { 1 } do print(ln.sh('x').code) end",
        "print(load('return ln.sh(\"x\").code')())",
        "local t = setmetatable({}, { __index = function() return ln.sh('x').code end }) print(t.x)",
        "local t = setmetatable({}, { __newindex = function() print(ln.sh('x').code) end }) t.x = 1",
        "local t = setmetatable({}, { __call = function() return ln.sh('x').code end }) print(t())",
        "local t = setmetatable({}, { __add = function() return ln.sh('x').code end }) print(t + 1)",
        "local t = setmetatable({}, { __lt = function() return ln.sh('x').ok end }) if t < t then print(0) end",
        "local t = setmetatable({}, { __eq = function() return ln.sh('x').ok end }) if t == setmetatable({}, getmetatable(t)) then print(0) end",
        "local t = setmetatable({}, { __concat = function() return ln.sh('x').code end }) print(t .. '')",
        "local t = setmetatable({}, { __pairs = function() ln.sh('x') return next, { 0 }, nil end }) for _, v in pairs(t) do print(v) end",
        // coroutines of the script's own
        "print(coroutine.wrap(function() return ln.sh('x').code end)())",
        "local co = coroutine.create(function() return ln.sh('x').code end) local _, v = coroutine.resume(co) print(v)",
        "for v in coroutine.wrap(function() coroutine.yield(ln.sh('x').code) end) do print(v) end",
        "local f = coroutine.wrap(function() return coroutine.wrap(function() return coroutine.wrap(function() return ln.sh('x').code end)() end)() end) print(f())",
        "local co = coroutine.create(function(a) local b = coroutine.yield(a + ln.sh('x').code) ln.sh('y') return b end)
         local _, v = coroutine.resume(co, 0) local _, w = coroutine.resume(co, 0) print(v + w)",
        "print(select(2, pcall(coroutine.wrap(function() return select(2, pcall(ln.sh, 'x')).code end))))",
    ] {
        let lines = logs(body).await.unwrap_or_else(|error| panic!("{body}\n{error}"));
        assert_eq!(lines, ["0"], "{body}");
    }
}

#[tokio::test]
async fn calls_that_cannot_wait_say_what_to_do() {
    for body in [
        "table.sort({ 1, 2 }, function() return ln.sh('x').ok end)",
        "string.gsub('x', '.', function() return ln.sh('x').stdout end)",
        "tostring(setmetatable({}, { __tostring = function() return ln.sh('x').stdout end }))",
    ] {
        let error = logs(body).await.expect_err(body);
        assert!(error.message.contains("collect the values in a table first"), "{body}\n{error}");
        assert_eq!(error.line(), Some(2), "{body}\n{error}");
    }
}

#[tokio::test]
async fn frames_of_the_host_are_not_in_the_trace() {
    let error = logs("local function go()\n  ln.host.fail()\nend\ngo()").await.err();
    assert!(error.is_some());
    let case = Case::new().options(|o| {
        o.functions.push(crate::script::HostFunction {
            name: "host.fail".into(),
            doc: String::new(),
            call: std::sync::Arc::new(|_| Box::pin(async { Err(anyhow::anyhow!("no").context("outer")) })),
        });
    });
    let error = logs_with(case, "local function go()\n  ln.host.fail()\n  return 1\nend\ngo()").await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("loop.lua:3: ln.host.fail: outer: no"), "{text}");
    assert!(!text.contains("mlua") && !text.contains("[C]") && !text.contains("prelude"), "{text}");
    assert!(text.contains("loop.lua:3: in "), "{text}");
    assert!(text.contains("loop.lua:6: in function <loop.lua:1>"), "{text}");
}

#[tokio::test]
async fn host_functions_get_and_give_data() {
    let case = Case::new().options(|o| {
        o.functions.push(crate::script::HostFunction {
            name: "tickets.get".into(),
            doc: String::new(),
            call: std::sync::Arc::new(|asked| {
                Box::pin(async move { Ok(serde_json::json!({ "asked": asked, "list": [1, 2] })) })
            }),
        });
    });
    let lines = logs_with(case, "local t = ln.tickets.get { id = 7 } print(t.asked.id, #t.list)").await.unwrap();
    assert_eq!(lines, ["7\t2"]);
}

#[tokio::test]
async fn many_calls_wait_at_once_in_coroutines_of_one_script() {
    let lines = logs(
        "local sum = 0
         for i = 1, 50 do sum = sum + coroutine.wrap(function() return ln.sh('x').code + 1 end)() end
         print(sum)",
    )
    .await
    .unwrap();
    assert_eq!(lines, ["50"]);
}
