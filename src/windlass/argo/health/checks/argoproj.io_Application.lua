-- The health Argo CD shows, if it was found for what is wanted now: of other sources, or in mid-operation, it is old.
local status = obj.status or {}

local function is_empty(value)
  if type(value) ~= "table" then
    return value == nil or value == "" or value == false
  end
  for _, each in pairs(value) do
    if not is_empty(each) then return false end
  end
  return true
end

-- Argo CD leaves out some of what is empty when it copies a source; but among Helm's values what is empty has a meaning.
local function are_same(a, b, exactly)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or not exactly and is_empty(a) and is_empty(b)
  end
  for key, value in pairs(a) do
    if not are_same(value, b[key], exactly or key == "valuesObject") then return false end
  end
  for key, value in pairs(b) do
    if a[key] == nil and (exactly or not is_empty(value)) then return false end
  end
  return true
end

local function is_of_what_is_wanted()
  local compared = (status.sync or {}).comparedTo or {}
  if not is_empty(obj.spec.sources) then
    return are_same(obj.spec.sources, compared.sources)
  end
  return are_same(obj.spec.source, compared.source)
end

if obj.operation ~= nil then
  return {status = "Progressing", message = "an operation was asked for"}
end
local phase = (status.operationState or {}).phase
if phase == "Running" or phase == "Terminating" then
  return {status = "Progressing", message = "an operation runs"}
end
if not is_of_what_is_wanted() then
  return {status = "Progressing", message = "Argo CD has not compared it with its present sources yet"}
end
local health = status.health or {}
if health.status == nil then
  return {status = "Progressing", message = "Argo CD has not told its health yet"}
end
return {status = health.status, message = health.message}
