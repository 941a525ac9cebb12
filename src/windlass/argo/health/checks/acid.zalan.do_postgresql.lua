-- The operator's own word. That its pods are ready stands in its StatefulSet, not here.
local said = (obj.status or {}).PostgresClusterStatus
if said == "Running" then
  return {status = "Healthy"}
end
if said == "Invalid" or (said or ""):find("Failed", 1, true) then
  return {status = "Degraded", message = "the operator says " .. said}
end
return {status = "Progressing", message = "the operator says " .. (said or "nothing yet")}
