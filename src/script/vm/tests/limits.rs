//! Runaways: everything that does not come back by itself is stopped, and said where.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::harness::{Case, Outcome};
use crate::script::{ErrorKind, HostFunction, ScriptError, Vm};
use crate::world::ScriptedWorld;

/// A script, its top level endless in some way, under a small budget.
fn stopped(text: &str) -> crate::script::ScriptError {
    let case = Case::new().options(|o| o.instruction_budget = 300_000);
    let started = Instant::now();
    let error = case.prints(text).expect_err("an endless script must not load");
    assert!(started.elapsed() < Duration::from_secs(9), "{text}");
    error
}

#[test]
fn endless_loops_are_stopped_wherever_they_are() {
    for text in [
        "while true do end",
        "local co = coroutine.wrap(function() while true do end end) co()",
        "local co = coroutine.create(function() while true do end end) coroutine.resume(co)",
        "table.sort({ 1, 2, 3 }, function() while true do end end)",
        "string.gsub('x', '.', function() while true do end end)",
        "local t = setmetatable({}, { __index = function() while true do end end }) local _ = t.x",
        "local t = setmetatable({}, { __lt = function() while true do end end }) local _ = t < t",
        "local t = setmetatable({}, { __tostring = function() while true do end end }) print(t)",
        "local t = setmetatable({}, { __tostring = function() while true do end end }) ln.log.info('%s', t)",
        "while true do pcall(function() while true do end end) end",
        "while true do local co = coroutine.create(function() while true do end end) coroutine.resume(co) end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "xpcall(error, function() while true do end end)",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do pcall(require, 'nothing') end",
        "for k in pairs(setmetatable({}, { __pairs = function() while true do end end })) do end",
        "load('while true do end')()",
        "local function f() return f() end f()",
    ] {
        let error = stopped(text);
        assert_eq!(error.kind, ErrorKind::Budget, "{text}: {error}");
        assert!(error.message.contains("endless loop"), "{error}");
        if !text.contains("load(") {
            assert_eq!(error.line(), Some(1), "{text}: {error}");
        }
    }
}

#[test]
fn the_place_of_an_endless_loop_is_told() {
    let error = stopped("local x = 1\n\nwhile x do\n  x = x + 1\nend");
    assert_eq!(error.file(), Some("loop.lua"));
    assert!(matches!(error.line(), Some(3 | 4)), "{error}");
}

#[test]
fn the_memory_limit_is_an_error_and_the_script_goes_on() {
    let case = Case::new();
    for text in [
        "string.rep('x', 2000000000)",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
    ] {
        let error = case.prints(text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    }
    assert_eq!(
        case.prints(
            "print(pcall(string.rep, 'x', 2000000000)) local t = {} for i = 1, 100000 do t[i] = i end print(#t)"
        )
        .unwrap(),
        ["false\tnot enough memory", "100000"]
    );
}

#[test]
fn a_pattern_bomb_does_not_hold_the_host() {
    let case = Case::new().options(|o| {
        o.stuck_after = Duration::from_millis(300);
        o.stuck_grace = Duration::from_millis(300);
    });
    let started = Instant::now();
    let error = case.prints("string.find(('a'):rep(4000), ('a-'):rep(9) .. 'b')").unwrap_err();
    assert_eq!(error.kind, ErrorKind::Stuck, "{error}");
    assert!(error.message.contains("pattern"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(9));
}

#[test]
fn deep_recursion_is_an_error() {
    let error = Case::new().prints("local function f() return 1 + f() end f()").unwrap_err();
    assert!(error.message.contains("stack overflow") || error.message.contains("recurse less"), "{error}");
}

#[tokio::test]
async fn each_effect_brings_a_new_budget() {
    let case = Case::new().options(|o| o.instruction_budget = 400_000);
    let text = "return function(run)
      for _ = 1, 5 do
        for i = 1, 50000 do local x = i * 2 end
        ln.sh 'true'
      end
      return run:stop 'enough'
    end";
    let (result, _) = case.run(text, ScriptedWorld::new([])).await;
    assert_eq!(result.unwrap().summary, "enough");
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::task::yield_now().await;
    }
}

fn jobs(vm: &Vm) -> usize {
    vm.shared().limits.jobs.load(Ordering::Acquire)
}

/// Gives scripts `ln.host.wait`, which never answers and sets the flag when it is ended.
fn waiting(ended: &Arc<AtomicBool>) -> Case {
    struct Ended(Arc<AtomicBool>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let ended = Arc::clone(ended);
    let call = move |_| -> crate::script::HostFuture {
        let ended = Ended(Arc::clone(&ended));
        Box::pin(async move {
            let _ended = ended;
            std::future::pending().await
        })
    };
    Case::new().options(|o| {
        o.functions.push(HostFunction { name: "host.wait".into(), doc: String::new(), call: Arc::new(call) });
    })
}

/// Starts the script and waits until it is at work.
async fn started(
    case: &Case,
    text: &str,
) -> (Vm, tokio::task::JoinHandle<Result<crate::engine::RunResult, ScriptError>>) {
    let (vm, loaded) = case.load(text).unwrap();
    let outcome = Outcome::new(ScriptedWorld::new([]), case.folder.path());
    let running = tokio::spawn({
        let (vm, run) = (vm.clone(), outcome.run.clone());
        async move { vm.run(&loaded, run).await }
    });
    until("the script never started", || jobs(&vm) > 0).await;
    (vm, running)
}

#[tokio::test]
async fn a_request_to_end_now_needs_no_consent_of_the_script() {
    for body in ["while true do pcall(function() while true do end end) end", "while true do pcall(ln.host.wait) end"] {
        let ended = Arc::default();
        let case = waiting(&ended).options(|o| o.instruction_budget = u64::MAX >> 1);
        let (vm, loaded) = case.load(&format!("return function() {body} end")).unwrap();
        let outcome = Outcome::new(ScriptedWorld::new([]), case.folder.path());
        let running = tokio::spawn({
            let (vm, run) = (vm.clone(), outcome.run.clone());
            async move { vm.run(&loaded, run).await }
        });
        until("the script never started", || jobs(&vm) > 0).await;
        outcome.run.interrupts().ask(crate::engine::Request {
            urgency: crate::engine::Urgency::Now,
            reason: crate::policy::Reason::Interrupted,
            by: "a test".into(),
            signal: Some(2),
        });
        let error = running.await.unwrap().unwrap_err();
        assert_eq!(error.run_reason(), crate::policy::Reason::Interrupted, "{body}: {error}");
    }
}

#[tokio::test]
async fn cancelling_ends_a_busy_script() {
    let case = Case::new().options(|o| o.instruction_budget = u64::MAX >> 1);
    let text = "return function() while true do pcall(function() while true do end end) end end";
    let (vm, running) = started(&case, text).await;
    vm.cancel(Duration::from_millis(50)).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled, "{error}");
}

#[tokio::test]
async fn cancelling_ends_a_script_that_waits_and_will_not_listen() {
    let ended = Arc::default();
    let case = waiting(&ended);
    let (vm, running) = started(&case, "return function() while true do pcall(ln.host.wait) end end").await;
    vm.cancel(Duration::from_millis(200)).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled, "{error}");
    until("the effect goes on", || ended.load(Ordering::Acquire)).await;
}

#[tokio::test]
async fn a_run_that_is_dropped_ends_with_its_effects_also_inside_coroutines() {
    for body in ["ln.host.wait()", "coroutine.wrap(function() pcall(ln.host.wait) end)()"] {
        let ended = Arc::default();
        let case = waiting(&ended);
        let (vm, running) = started(&case, &format!("return function() {body} end")).await;
        until("the effect never began", || Arc::strong_count(&ended) > 2).await;
        running.abort();
        until("the script goes on", || jobs(&vm) == 0).await;
        until("the effect goes on", || ended.load(Ordering::Acquire)).await;
        assert!(running.await.unwrap_err().is_cancelled());
    }
}

#[tokio::test]
async fn a_panic_in_the_host_is_not_for_the_script_to_catch() {
    let panics = |name: &str, late: bool| HostFunction {
        name: name.into(),
        doc: String::new(),
        call: Arc::new(move |_| {
            assert!(late, "at once");
            Box::pin(async { panic!("late") })
        }),
    };
    for name in ["host.now", "host.late"] {
        let case = Case::new().options(|o| o.functions.extend([panics("host.now", false), panics("host.late", true)]));
        let text = format!("return function() while true do pcall(ln.{name}) end end");
        let (result, _) = case.run(&text, ScriptedWorld::new([])).await;
        let error = result.unwrap_err();
        assert!(error.message.contains("which is a bug"), "{name}: {error}");
    }
}

/// Uses most of what a script has, for ever.
const EVERYTHING: &str = "
  local mt = { __index = function(_, k) return k end, __lt = function(a, b) return a.n < b.n end,
    __tostring = function() return 'x' end, __pairs = function(t) return next, { a = 1 }, nil end }
  while true do
    local t = setmetatable({ n = 1 }, mt)
    for k, v in pairs { a = 1, b = 2, [3] = 4 } do local s = ('%s=%s'):format(k, v) end
    for k in pairs(t) do local s = tostring(t) .. k end
    table.sort({ 3, 1, 2 }, function(a, b) return a < b end)
    local s = ('abc'):gsub('.', function(c) return c:upper() end)
    pcall(error, { code = 1 }) pcall(ln.agent, { timout = 1 }) pcall(require, 'nothing')
    xpcall(function() error 'x' end, function(m) return debug.traceback(m) end)
    local co = coroutine.wrap(function(a) for i = 1, 3 do a = coroutine.yield(a + i) end return 0 end)
    for i = 1, 4 do co(i) end
    local json = ln.json.encode(ln.json.decode('{\"a\":[1,2,{\"b\":null}]}'))
    local l = ln.loop { agent = 'claude', prompt = 'x', sensors = { 'a', ln.sensor { 'b' } } }
    local x = load('return 1 + 1')() + #ln.input
  end";

#[test]
fn a_script_can_be_ended_at_any_moment() {
    for step in 1..=60 {
        let case = Case::new().options(|o| o.instruction_budget = step * 1_000);
        let error = case.prints(EVERYTHING).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Budget, "{step}: {error}");
    }
}

#[test]
fn memory_can_run_out_at_any_moment() {
    for step in 0..60 {
        let case = Case::new().options(|o| o.memory_limit = (300 << 10) + step * 1_111);
        let keeping = "keep[#keep + 1] = ('x'):rep(5000) local t = set";
        let text = format!("local keep = {{}} {}", EVERYTHING.replace("local t = set", keeping));
        let error = case.prints(&text).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Memory, "{step}: {error:?}");
    }
}
