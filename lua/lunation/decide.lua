-- The decisions that a loop takes when a script says nothing else; use it as it is, or as the start of your own:
--
--   local default = ln.decide.default
--   decide = function(o) if o.change.lines > 500 then return "rollback", "too much at once" end return default.decide(o) end
--
-- Fewer failing: keep. More: roll back, with what broke. Equal: keep a better score, keep a result that was not seen yet;
-- one that was seen is a stall. Without sensors every change is kept.
local M = { name = "default", patience = 3 }

local function seen(o, fingerprint)
  for _, known in ipairs(o.seen) do
    if known == fingerprint then return true end
  end
  return false
end

function M.decide(o)
  local now, best = o.sense, o.best
  if not now or not best then return "keep" end
  if now.failing < best.failing then return "keep", ("%d failing, %d before"):format(now.failing, best.failing) end
  if now.failing > best.failing then return "rollback", "broke " .. table.concat(now:newly_failing(best), ", ") end
  if now.score > best.score then return "keep", ("score %s, %s before"):format(now.score, best.score) end
  if now.ok then return "keep", "all checks hold" end
  if seen(o, now.fingerprint) then return "stall", "a result that was seen before" end
  return "keep", "lateral"
end

return M
