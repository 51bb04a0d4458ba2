-- INFO ratelimit as the option -script of redis_exporter wants it: names and numbers in turn. A name carries the labels of
-- its metric, as in ratelimit_requests_total|command=gcra|outcome=refused. prometheus.yml makes labels of them.
local series = {}
local function add(number, ...)
  table.insert(series, table.concat({...}, '|'))
  table.insert(series, number)
end

local counters = {
  errors = true, shadow_refused = true, waited_granted = true, waited_timeout = true,
}
local info, policies = {}, {}
for line in string.gmatch(redis.call('INFO', 'ratelimit'), '[^\r\n]+') do
  local field, value = string.match(line, '^ratelimit_([%w_]+):(.*)$')
  field = field or ''
  local command, outcome = string.match(field, '^(%w+)_(%w+)$')
  local policy = string.match(field, '^policy_(%d+)')
  if field == 'version' or field == 'build' then
    info[field] = value
  elseif field == 'policies_digest' then
    add('1', 'ratelimit_policies_info', 'digest=' .. value)
  elseif policy and string.find(field, '_limit_') then
    local limit, counts = string.match(value, '^limit=([^,]+),(.*)$')
    for count, number in string.gmatch(counts, '([%w_]+)=(%d+)') do
      add(number, 'ratelimit_policy_limit_' .. count .. '_total', 'policy=' .. policies[policy], 'limit=' .. limit)
    end
  elseif policy then
    local name, counts = string.match(value, '^name=([^,]+),(.*)$')
    policies[policy] = name
    for count, number in string.gmatch(counts, '([%w_]+)=(%d+)') do
      if count == 'version' then
        add(number, 'ratelimit_policy_version', 'policy=' .. name)
      elseif count == 'admitted' or count == 'refused' then
        add(number, 'ratelimit_policy_requests_total', 'policy=' .. name, 'outcome=' .. count)
      else
        add(number, 'ratelimit_policy_' .. count .. '_total', 'policy=' .. name)
      end
    end
  elseif counters[field] then
    add(value, 'ratelimit_' .. field .. '_total')
  elseif outcome == 'admitted' or outcome == 'refused' then
    add(value, 'ratelimit_requests_total', 'command=' .. command, 'outcome=' .. outcome)
  elseif string.match(value or '', '^%d+$') then
    add(value, 'ratelimit_' .. field)
  end
end
if info.version then
  add('1', 'ratelimit_build_info', 'version=' .. info.version, 'build=' .. (info.build or ''))
end
return series
