local ln = require "lunation"

return function()
  local files = { "b", "a" }
  table.sort(files, function(x, y) return ln.sh("stat " .. x).stdout < ln.sh("stat " .. y).stdout end)
end
