-- A script for wrk: posts the lines of the file $BODIES in turn; writes figures as one JSON line.

local bodies = {}
for line in io.lines(os.getenv("BODIES")) do
  bodies[#bodies + 1] = line
end
local headers = { ["Content-Type"] = "application/json" }
local sent = 0

function request()
  sent = sent + 1
  return wrk.format("POST", nil, headers, bodies[(sent - 1) % #bodies + 1])
end

function done(summary, latency, requests)
  local errors = summary.errors
  local figures = {
    requests = summary.requests,
    seconds = summary.duration / 1e6,
    p50_ms = latency:percentile(50) / 1e3,
    p95_ms = latency:percentile(95) / 1e3,
    p99_ms = latency:percentile(99) / 1e3,
    errors = errors.connect + errors.read + errors.write + errors.status + errors.timeout,
  }
  local parts = {}
  for name, value in pairs(figures) do
    parts[#parts + 1] = string.format('"%s": %.3f', name, value)
  end
  io.write("{", table.concat(parts, ", "), "}\n")
end
