-- INFO ratelimit as redis_exporter's --script wants it: names and numbers in turn.
local numbers = {}
for line in string.gmatch(redis.call('INFO', 'ratelimit'), '[^\r\n]+') do
  local name, number = string.match(line, '^ratelimit_([%w_]+):(%d+)$')
  if name and name ~= 'build' and name ~= 'policies_digest' then
    table.insert(numbers, name)
    table.insert(numbers, number)
  end
  local policy, counts = string.match(line, '^ratelimit_policy_%d+:name=([^,]+),(.*)$')
  for count, number in string.gmatch(counts or '', '([%w_]+)=(%d+)') do
    table.insert(numbers, 'policy_' .. count .. ':' .. policy)
    table.insert(numbers, number)
  end
end
return numbers
