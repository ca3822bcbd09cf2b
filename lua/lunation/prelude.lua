-- What every script finds when it starts, and what it does not.
--
-- Runs once in each VM, before any text of a user's. `host` holds functions of the host; what this file returns goes back
-- to the host and is never seen by scripts. After it:
--   * nothing that a script can reach reads a file, a clock or an address, and no order depends on a hash seed;
--   * a run that was ended cannot be kept alive by pcall, xpcall or coroutines;
--   * a lunation call that waits may be used inside coroutines of the script's own;
--   * libraries and globals cannot be changed, and a name that nobody declared is an error.
local host = ...

local raw = {
  pcall = pcall, xpcall = xpcall, setmetatable = setmetatable, getmetatable = getmetatable, load = load,
  pairs = pairs, next = next, tostring = tostring, format = string.format, rawset = rawset, rawget = rawget,
  resume = coroutine.resume, close = coroutine.close, create = coroutine.create, yield = coroutine.yield,
  sort = table.sort, randomseed = math.randomseed,
}
local type, error, select, pack, unpack, math_type = type, error, select, table.pack, table.unpack, math.type
local rawget, gsub, find = rawget, string.gsub, string.find
local PENDING, NULL, check = host.pending, host.null, host.check

-- Tables that only the host may change, with what they show.
local shown = raw.setmetatable({}, { __mode = "k" })

-- Errors -------------------------------------------------------------------------------------

-- After a failure: has the run been ended? Then go on failing. Else hand out the error, host errors as text.
local function guard(ok, ...)
  if ok then return true, ... end
  check()
  return false, host.describe((...)), select(2, ...)
end

local function pcall(f, ...) return guard(raw.pcall(f, ...)) end

-- The handler runs after the stack is unwound, where hooks work and calls may wait; the trace is kept for it.
local last_trace
local function keep_trace(e)
  last_trace = host.traceback()
  return e
end
local function handled(handler, ok, ...)
  if ok then return true, ... end
  check()
  return false, handler(host.describe((...)))
end
local function xpcall(f, handler, ...)
  if type(handler) ~= "function" then error("xpcall wants a function as its second argument", 2) end
  return handled(handler, raw.xpcall(f, keep_trace, ...))
end
local debug = {
  traceback = function(message)
    local trace = last_trace or host.traceback()
    last_trace = nil
    if message == nil then return trace end
    if type(message) ~= "string" then return message end
    return message .. "\n" .. trace
  end,
}

-- How the host calls into a script: the error's value and its stack come back beside each other.
local caught = raw.setmetatable({}, { __mode = "k" })
local function catch(e)
  local both = { value = e, trace = host.traceback() }
  caught[both] = true
  return both
end
local function outcome(ok, ...)
  if ok then return true, ... end
  local both = ...
  if type(both) == "table" and caught[both] then return false, both.value, both.trace end
  return false, both, ""
end
local function protected(f, ...) return outcome(raw.xpcall(f, catch, ...)) end

-- Coroutines ---------------------------------------------------------------------------------

-- A call that waits yields a marker that is meant for the host: it is passed on, never handed to the script.
local function pump(co, ok, ...)
  if ok and select("#", ...) == 1 and (...) == PENDING then
    return pump(co, raw.resume(co, raw.yield(PENDING)))
  end
  if not ok then
    check()
    return false, host.describe((...))
  end
  return true, ...
end
local co = {
  create = raw.create, yield = raw.yield, status = coroutine.status, running = coroutine.running,
  isyieldable = coroutine.isyieldable,
  resume = function(thread, ...) return pump(thread, raw.resume(thread, ...)) end,
  close = function(thread) return guard(raw.close(thread)) end,
}
local function unwrap(thread, ok, ...)
  if ok then return ... end
  raw.close(thread)
  error((...), 0)
end
function co.wrap(f)
  local thread = raw.create(f)
  return function(...) return unwrap(thread, pump(thread, raw.resume(thread, ...))) end
end

-- Order --------------------------------------------------------------------------------------

local rank = { number = 1, string = 2, boolean = 3 }
local function before(a, b)
  local kind_a, kind_b = rank[type(a)] or 4, rank[type(b)] or 4
  if kind_a ~= kind_b then return kind_a < kind_b end
  if kind_a == 3 then return not a and b end
  return a < b
end

local function orderless(level)
  error("a table with more than one table, function or other object as key has no order that a replay could repeat: "
    .. "keep the objects in a list beside it", level + 1)
end

local function sorted_keys(t, level)
  local keys, count, kind, mixed, odd = {}, 0, nil, false, 0
  for key in raw.next, t do
    count = count + 1
    keys[count] = key
    local this = type(key)
    if not rank[this] then odd = odd + 1 end
    if kind == nil then kind = this elseif kind ~= this then mixed = true end
  end
  if odd > 1 then orderless(level + 1) end
  if count > 1 then
    if mixed or kind == "boolean" then raw.sort(keys, before) else raw.sort(keys) end
  end
  return keys
end

local function pairs(t)
  if t == nil or (type(t) ~= "table" and raw.getmetatable(t) == nil) then
    error("pairs wants a table, got " .. type(t), 2)
  end
  local step, state, control = raw.pairs(t)
  if step ~= raw.next or type(state) ~= "table" then return step, state, control end
  local keys, at = sorted_keys(state, 2), 0
  return function()
    while true do
      at = at + 1
      local key = keys[at]
      if key == nil then return nil end
      local value = rawget(state, key)
      if value ~= nil then return key, value end
    end
  end, t, nil
end

-- Without state: the smallest key that comes after `key`.
local function next(t, key)
  if type(t) ~= "table" then error("next wants a table, got " .. type(t), 2) end
  local state = shown[t] or t
  local best
  local odd = 0
  for candidate in raw.next, state do
    if not rank[type(candidate)] then odd = odd + 1 end
    if odd > 1 then orderless(2) end
    if (key == nil or before(key, candidate)) and (best == nil or before(candidate, best))
      and rawget(state, candidate) ~= NULL then
      best = candidate
    end
  end
  if best == nil then return nil end
  return best, rawget(state, best)
end

-- Addresses differ from run to run; numbers in the order of asking do not.
local numbers, last_number = raw.setmetatable({}, { __mode = "k" }), 0
local function tostring(value)
  local text = raw.tostring(value)
  local kind = type(value)
  if (kind == "table" or kind == "function" or kind == "thread" or kind == "userdata") and find(text, "^[%w_. ]+: 0x%x+$") then
    local number = numbers[value]
    if not number then
      last_number = last_number + 1
      number = last_number
      numbers[value] = number
    end
    return (gsub(text, "0x%x+$", raw.format("#%d", number)))
  end
  return text
end

local function format(pattern, ...)
  if type(pattern) == "string" and find((gsub(pattern, "%%%%", "")), "%%[-0-9.]*p") then
    error("string.format has no %p here: addresses differ from run to run", 2)
  end
  local arguments = pack(...)
  for at = 1, arguments.n do
    local kind = type(arguments[at])
    if kind == "table" or kind == "function" or kind == "thread" or kind == "userdata" then
      arguments[at] = tostring(arguments[at])
    end
  end
  local ok, text = raw.pcall(raw.format, pattern, unpack(arguments, 1, arguments.n))
  if not ok then
    check()
    error(text, 2)
  end
  return text
end

local function less(a, b) return a < b end
local function sort(list, lt)
  if type(list) ~= "table" then error("table.sort wants a table, got " .. type(list), 2) end
  if shown[list] then error("table.sort cannot change a list that belongs to lunation: copy it first", 2) end
  if lt ~= nil and type(lt) ~= "function" then error("table.sort wants a function as its second argument", 2) end
  host.sort(list, lt or less)
end

local function randomseed(seed)
  if math_type(seed) ~= "integer" then
    error("math.randomseed wants a whole number; without a call the seed of the run is used", 2)
  end
  raw.randomseed(seed)
end

-- Metatables, text, files ----------------------------------------------------------------------

-- A script's metatable is never set itself, but a copy of its metamethods without those that would run where no limit
-- holds. Writing `mt.__close = f` later must not get there either: a closer that runs while a script is being ended works
-- on a stack that is half gone. `__index` and `__newindex` may be set later; other metamethods count as of the call.
local real_of, given_of = raw.setmetatable({}, { __mode = "k" }), raw.setmetatable({}, { __mode = "k" })

local function late_index(mt)
  return function(t, key)
    local index = rawget(mt, "__index")
    if index == nil then return nil end
    if type(index) == "function" then return index(t, key) end
    return index[key]
  end
end
local function late_newindex(mt)
  return function(t, key, value)
    local newindex = rawget(mt, "__newindex")
    if newindex == nil then
      raw.rawset(t, key, value)
    elseif type(newindex) == "function" then
      newindex(t, key, value)
    else
      newindex[key] = value
    end
  end
end

local function setmetatable(t, mt)
  if type(t) ~= "table" then error("setmetatable wants a table, got " .. type(t), 2) end
  if shown[t] then error("this table belongs to lunation and cannot be changed", 2) end
  if mt == nil then return raw.setmetatable(t, nil) end
  if type(mt) ~= "table" then error("setmetatable wants a table or nil as its second argument, got " .. type(mt), 2) end
  for _, name in ipairs { "__gc", "__close" } do
    if rawget(mt, name) ~= nil then
      error(name .. " is not available in lunation scripts: it would run where nothing can stop it", 2)
    end
  end
  local real = real_of[mt]
  if not real then
    real = {}
    real_of[mt], given_of[real] = real, mt
  end
  for name in raw.next, real do real[name] = nil end
  for name, value in raw.next, mt do
    if type(name) == "string" and find(name, "^__") then real[name] = value end
  end
  if real.__index == nil then real.__index = late_index(mt) end
  if real.__newindex == nil then real.__newindex = late_newindex(mt) end
  return raw.setmetatable(t, real)
end

local function getmetatable(value)
  local real = raw.getmetatable(value)
  return given_of[real] or real
end

local function rawset_(t, key, value)
  if shown[t] then error("this table belongs to lunation and cannot be changed", 2) end
  return raw.rawset(t, key, value)
end

local environment
local function load(chunk, name, _, env)
  local text = chunk
  if type(chunk) == "function" then
    local parts = {}
    for part in chunk do
      if part == "" then break end
      parts[#parts + 1] = part
    end
    text = table.concat(parts)
  end
  if type(text) ~= "string" then error("load wants a string or a function, got " .. type(text), 2) end
  return raw.load(text, name or "=(load)", "t", env == nil and environment or env)
end

local loaded, loading = {}, {}
local function require(name)
  if type(name) ~= "string" then error("require wants the name of a module, got " .. type(name), 2) end
  if loaded[name] ~= nil then return loaded[name] end
  for at = 1, #loading do
    if loading[at] == name then
      error("these modules require each other: " .. table.concat(loading, " -> ", at) .. " -> " .. name, 2)
    end
  end
  local chunk = host.find(name)
  loading[#loading + 1] = name
  local ok, value = raw.pcall(chunk, name)
  loading[#loading] = nil
  if not ok then
    check()
    error(value, 0)
  end
  if value == nil then value = true end
  loaded[name] = value
  return value
end

local function print(...)
  local parts = {}
  for at = 1, select("#", ...) do parts[at] = tostring((select(at, ...))) end
  host.log("info", table.concat(parts, "\t"))
end

-- Read-only tables -----------------------------------------------------------------------------

-- A proxy that shows `content`. `missing(key)` is asked for unknown names and may raise; `call` makes it callable.
local function readonly(content, label, missing, call)
  local proxy = {}
  shown[proxy] = content
  return raw.setmetatable(proxy, {
    __index = function(_, key)
      local value = content[key]
      if value == nil and missing then return missing(key) end
      return value
    end,
    __newindex = function(_, key) error(raw.format("%s cannot be changed (%s.%s)", label, label, raw.tostring(key)), 2) end,
    __pairs = function() return raw.next, content, nil end,
    __len = function() return #content end,
    __call = call,
    __name = label,
    __metatable = false,
  })
end

-- Records: plain data from the host. A list is any proxy made from `n`; null fields are known and nil.
local methods = {}

local function fails(reading)
  return reading ~= nil and reading.state == "failed" and not reading.flaky
end

-- What of one reading fails now and did not in the one before: items, else the sensor, with counts where it only fails more.
local function newly_in(now, old, names)
  if #now.items > 0 then
    local known = {}
    if old then
      for _, item in ipairs(old.items) do known[item] = true end
    end
    for _, item in ipairs(now.items) do
      if not known[item] then names[#names + 1] = item end
    end
  elseif not old then
    names[#names + 1] = now.id
  elseif now.failing and (not old.failing or now.failing > old.failing) then
    local count = function(failing) return failing and raw.tostring(failing) or "?" end
    names[#names + 1] = raw.format("%s (%s failing, %s before)", now.id, count(now.failing), count(old.failing))
  end
end

methods.sense = {
  newly_failing = function(self, other)
    if type(self) ~= "table" or shown[self] == nil or type(other) ~= "table" or shown[other] == nil then
      error("write now:newly_failing(before) with two senses, like o.sense:newly_failing(o.best)", 2)
    end
    local before, new = {}, {}
    for _, reading in ipairs(other.readings) do
      if fails(reading) then before[reading.id] = reading end
    end
    for _, reading in ipairs(self.readings) do
      if fails(reading) then newly_in(reading, before[reading.id], new) end
    end
    return new
  end,
}

-- The names of a record's fields are listed in its place in an error: `label` says whose they are.
local function record(content, label)
  local own = methods[label]
  local proxy = {}
  shown[proxy] = content
  return raw.setmetatable(proxy, {
    __index = function(_, key)
      local value = content[key]
      if value ~= nil then
        if value == NULL then return nil end
        return value
      end
      if own and own[key] then return own[key] end
      local names = {}
      for name in raw.next, content do names[#names + 1] = name end
      for name in raw.next, own or {} do names[#names + 1] = name end
      raw.sort(names)
      error(host.unknown_field(label, raw.tostring(key), names), 2)
    end,
    __newindex = function(_, key)
      error(raw.format("%s.%s cannot be set: an observation is frozen, answer with a decision instead", label, raw.tostring(key)), 2)
    end,
    __pairs = function()
      local plain = {}
      for key, value in raw.next, content do
        if value ~= NULL then plain[key] = value end
      end
      return raw.next, plain, nil
    end,
    __name = label,
    __metatable = false,
  })
end

local function list(content, label)
  return readonly(content, label, nil, nil)
end

-- For the host: a function that logs at a level, and one that answers for names that a namespace does not have.
local function logger(level)
  return function(pattern, ...)
    if select("#", ...) == 0 then
      host.log(level, tostring(pattern))
    else
      host.log(level, format(pattern, ...))
    end
  end
end
local function missing(explain)
  return function(key) error(explain(raw.tostring(key)), 3) end
end

-- Globals --------------------------------------------------------------------------------------

local text = {}
for name, f in raw.pairs(string) do text[name] = f end
text.dump = nil
text.format = format
local strings = readonly(text, "string")
raw.getmetatable("").__index = strings
raw.getmetatable("").__metatable = false

local tables = {}
for name, f in raw.pairs(table) do tables[name] = f end
tables.sort = sort

local numbers_lib = {}
for name, f in raw.pairs(math) do numbers_lib[name] = f end
numbers_lib.randomseed = randomseed

local names = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, load = load, next = next,
  pairs = pairs, pcall = pcall, print = print, rawequal = rawequal, rawget = raw.rawget, rawlen = rawlen,
  rawset = rawset_, require = require, select = select, setmetatable = setmetatable, tonumber = tonumber,
  tostring = tostring, type = type, xpcall = xpcall, _VERSION = _VERSION,
  coroutine = readonly(co, "coroutine"), debug = readonly(debug, "debug"), math = readonly(numbers_lib, "math"),
  string = strings, table = readonly(tables, "table"), utf8 = readonly(utf8, "utf8"),
}

environment = {}
shown[environment] = names
raw.setmetatable(environment, {
  __index = raw.setmetatable(names, {
    __index = function(_, key) error(host.undeclared(raw.tostring(key), false), 2) end,
  }),
  __newindex = function(_, key) error(host.undeclared(raw.tostring(key), true), 2) end,
  __metatable = false,
})

return {
  protected = protected, environment = environment, names = names, readonly = readonly, record = record, list = list,
  loaded = loaded, seed = raw.randomseed, logger = logger, missing = missing, shown = shown,
}
