-- Healthy is: phase Ready and HEALTH_OK. A warning is no health: data may be at less than its wanted redundancy.
local status = obj.status or {}
local ceph = status.ceph or {}

local function complaints()
  local found = {}
  for name, detail in pairs(ceph.details or {}) do
    found[#found + 1] = name .. ": " .. tostring(detail.message or detail.severity)
  end
  return table.concat(found, "; ")
end

if ceph.health == "HEALTH_WARN" or ceph.health == "HEALTH_ERR" then
  local details = complaints()
  return {status = "Degraded", message = details ~= "" and ceph.health .. ": " .. details or ceph.health}
end
if status.phase == "Failure" then
  return {status = "Degraded", message = status.message or "its phase is Failure"}
end
if status.phase == "Ready" and ceph.health == "HEALTH_OK" then
  return {status = "Healthy"}
end
return {
  status = "Progressing",
  message = "its phase is " .. tostring(status.phase or "not told") .. ", Ceph says " .. tostring(ceph.health or "nothing"),
}
