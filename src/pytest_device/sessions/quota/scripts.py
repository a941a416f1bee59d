"""Redis scripts, each atomic, timed by the server's clock; each step takes O(log n).

A claim that waits has a ticket. A ticket is a string that sorts by limit, urgency and number, so that one sorted set is
the queue of every limit, and the first ticket of a limit is one look-up. Only that claim can be served: the claims
behind it may not use the slots that it waits for. So only first claims look for slots; all others wait until they are
woken, and only renew their ticket once per period.

Claims block on a list of their own (BLPOP) rather than on a channel: a subscription would take a second connection of
each process, and a message that is sent before the claim listens would be lost.

Only commands of Redis 5.0. All names share a hash tag, so that a cluster keeps them on one node; the list of a claim,
whose name depends on the queue, could not be declared as a key.
"""

from typing import Final

KEYS: Final = (
    "ends",  # sorted set: numbers of slots, by the time at which they expire
    "taken",  # sorted set: the same numbers, by number
    "holders",  # hash: claim and holder of each number
    "grants",  # hash: the numbers that a claim got, while it may not know them yet
    "queue",  # sorted set: tickets; all have the score 0
    "tickets",  # hash: the ticket of each waiting claim
    "waiting",  # sorted set: waiting claims, by the time at which their tickets expire
    "server",  # hash: start of the server, number of slots taken, last number of a ticket
    "wake",  # prefix of a list per claim that has been woken
)
"""Names of the keys in the order of ``KEYS`` in the scripts; the last key is the slots of an older version."""

_BASE: Final = """
local ENDS, TAKEN, HOLDERS, GRANTS = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local QUEUE, TICKETS, WAITING, SERVER, WAKE, OLD = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A day after the last run, only the ID of the server's start is left, for 30 days: each run after a quiet day would
-- wait for slots to be renewed otherwise.
local function keep(...)
  for _, key in ipairs({...}) do call('PEXPIRE', key, 86400000) end
  call('PEXPIRE', SERVER, 2592000000)
end

-- Tickets

local function wake_list(claim) return WAKE .. ':' .. claim end

local function limit_of(ticket) return string.sub(ticket, 1, 10) end

local function order_of(ticket) return string.sub(ticket, 11, 27) end

local function parse(ticket)
  local count, claim = string.match(ticket, ' (%d+) (.*)')
  return tonumber(limit_of(ticket)), tonumber(count), claim
end

local function leave(claim)
  local ticket = call('HGET', TICKETS, claim)
  if not ticket then return end
  call('ZREM', QUEUE, ticket)
  call('HDEL', TICKETS, claim)
  call('ZREM', WAITING, claim)
  call('DEL', wake_list(claim))
end

-- Return the first ticket of each limit, in the order of service. There are as many as different limits.
local function first_tickets()
  local first, from = {}, '-'
  while true do
    local ticket = call('ZRANGEBYLEX', QUEUE, from, '+', 'LIMIT', 0, 1)[1]
    if not ticket then break end
    first[#first + 1] = ticket
    from = '(' .. limit_of(ticket) .. '~'  -- sorts after all tickets of this limit
  end
  table.sort(first, function(a, b) return order_of(a) < order_of(b) end)
  return first
end

-- Slots

local function room(first, limit) return limit - first - call('ZCOUNT', TAKEN, first, limit - 1) end

-- Return the lowest free numbers from first to limit - 1, of which there must be enough, each by bisection.
local function lowest_free(first, limit, count)
  local free = {}
  for index = 1, count do
    local low, high = first, limit - 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if call('ZCOUNT', TAKEN, first, middle) == middle - first + 1 then low = middle + 1 else high = middle end
    end
    free[index], first = low, low + 1
  end
  return free
end

local function claim_of(holder) return string.match(holder or '', '^%S*') end

local function take(number, claim, words, ends)
  call('ZADD', ENDS, ends, number)
  call('HSET', HOLDERS, number, claim .. ' ' .. words)
  call('HINCRBY', SERVER, 'held', call('ZADD', TAKEN, number, number))
end

local function free(number)
  local holder = call('HGET', HOLDERS, number)
  if holder then call('HDEL', GRANTS, claim_of(holder)) end
  call('HDEL', HOLDERS, number)
  call('ZREM', ENDS, number)
  if call('ZREM', TAKEN, number) == 1 then call('HINCRBY', SERVER, 'held', -1) end
end

-- Time

local function expire()
  for _, number in ipairs(call('ZRANGEBYSCORE', ENDS, '-inf', now)) do free(number) end
  for _, claim in ipairs(call('ZRANGEBYSCORE', WAITING, '-inf', now)) do leave(claim) end
end

local function move_ends(low, high, ends)
  for _, key in ipairs({ENDS, WAITING}) do
    for _, member in ipairs(call('ZRANGEBYSCORE', key, low, high)) do call('ZADD', key, ends, member) end
  end
end

-- Let nothing expire, and nothing last longer than it may, because the server's clock was set. A process expects a
-- time: that of the server's last reply, plus what has passed on its own clock, which nobody sets.
local function follow_clock(expected, lasts, settles)
  move_ends(string.format('(%d', now + lasts), '+inf', now + lasts)
  if expected and now - expected > 10000 then move_ends('-inf', now + settles, now + settles) end
end

-- Return how many milliseconds are left until every process has had the time to renew its slots since this server
-- started or lost data. A server that comes back empty or with an old snapshot knows none of them: its start has
-- another ID, or none. A server that evicts keys may lose some of them: then their numbers differ.
local function unsettled(settles)
  local info = redis.pcall('INFO', 'server')  -- an account may not be allowed to
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
  local known, settled, held = unpack(call('HMGET', SERVER, 'run', 'settled', 'held'))
  held = tonumber(held or 0)
  local is_lost = held ~= call('ZCARD', TAKEN) or held ~= call('ZCARD', ENDS) or held ~= call('HLEN', HOLDERS)
  if is_lost then
    call('DEL', ENDS, TAKEN, HOLDERS, GRANTS)
    call('HSET', SERVER, 'held', 0)
  end
  if is_lost or known ~= run then
    settled = now + settles
    call('HMSET', SERVER, 'run', run, 'settled', settled)
  end
  keep()
  return math.max(0, math.min(tonumber(settled) - now, settles))
end

-- Wake the first claims that have enough free slots.
local function wake()
  if tonumber(call('HGET', SERVER, 'settled') or 0) > now then return end
  local first = 0
  for _, ticket in ipairs(first_tickets()) do
    local limit, count, claim = parse(ticket)
    if limit > first then
      local list = wake_list(claim)
      if room(first, limit) >= count and call('LLEN', list) == 0 then
        call('RPUSH', list, 1)
        call('PEXPIRE', list, 60000)
      end
      first = limit
    end
  end
end

-- Return how many slots runs of the version before these keys hold. They don't know of those here, nor do these of them.
local function held_by_older_version()
  local held = 0
  if call('EXISTS', OLD) == 1 then
    for _, text in ipairs(call('HVALS', OLD)) do
      if cjson.decode(text).ends > now then held = held + 1 end
    end
  end
  return held
end
"""

LOOK: Final = (
    _BASE
    + """
-- Take all or none; else take or renew a ticket if an urgency is given. Return whether it took them, their numbers, the
-- first slot that it may use, whether it is the first claim of its limit, milliseconds until slots are given and until
-- the next look, the time, and the number of slots of an older version.
local claim, count, limit, words, urgency = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local lasts, settles, expected = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
call('HSET', SERVER, 'asked', now)  -- the first write: fails if the memory is full, before anything has changed
follow_clock(expected, lasts, settles)
expire()

local granted = call('HGET', GRANTS, claim)
if granted then  -- the reply to an earlier look was lost
  local numbers = {}
  for number in string.gmatch(granted, '%d+') do numbers[#numbers + 1] = tonumber(number) end
  return {1, numbers, 0, 0, 0, 0, now, held_by_older_version()}
end

local own = call('HGET', TICKETS, claim)
if urgency ~= '' then
  if not own or string.sub(own, 11, 11) ~= urgency then
    leave(claim)
    own = string.format('%010d%s%016d %d %s', limit, urgency, call('HINCRBY', SERVER, 'number', 1), count, claim)
    call('ZADD', QUEUE, 0, own)
    call('HSET', TICKETS, claim, own)
  end
  call('ZADD', WAITING, now + lasts, claim)
  keep(QUEUE, TICKETS, WAITING)
end

local first, before_limits = 0, {}
for _, ticket in ipairs(first_tickets()) do
  if not own or order_of(ticket) < order_of(own) then
    first = math.max(first, tonumber(limit_of(ticket)))
    before_limits[#before_limits + 1] = ticket
  end
end

local wait = 0
if limit - first >= count and room(first, limit) >= count then
  wait = unsettled(settles)
  if wait == 0 and room(first, limit) >= count then
    local numbers = lowest_free(first, limit, count)
    leave(claim)
    for _, number in ipairs(numbers) do take(number, claim, words, now + lasts) end
    call('HSET', GRANTS, claim, table.concat(numbers, ' '))
    keep(ENDS, TAKEN, HOLDERS, GRANTS)
    wake()  -- the next claim, for which there may be enough slots, too
    return {1, numbers, 0, 0, 0, 0, now, held_by_older_version()}
  end
end
wake()  -- whoever looks does it for all: the slots of dead processes have expired

-- A first claim looks again when a slot expires, or a claim before it; any other when the claim right before it does.
local next_look = lasts
local function until_end(key, member)
  local ends = member and call('ZSCORE', key, member)
  if ends then next_look = math.min(next_look, tonumber(ends) - now) end
end
local own_limit = own and limit_of(own)
local before = own and call('ZREVRANGEBYLEX', QUEUE, '(' .. own, '[' .. own_limit, 'LIMIT', 0, 1)[1]
if before then
  local _, _, claim_before = parse(before)
  until_end(WAITING, claim_before)
else
  until_end(ENDS, call('ZRANGE', ENDS, 0, 0)[1])
  for _, ticket in ipairs(before_limits) do
    local _, _, claim_before = parse(ticket)
    until_end(WAITING, claim_before)
  end
end
if wait > 0 then next_look = math.min(next_look, wait) end
return {0, {}, first, before and 0 or 1, wait, math.max(next_look, 0), now, 0}
"""
)

STAY: Final = """
-- Renew the ticket of a claim that is not the first one. Return milliseconds until the ticket right before it expires;
-- -1 if the claim must look: nothing is before it any more, or its own ticket is gone. Short, since thousands call it.
local ticket = redis.call('HGET', KEYS[6], ARGV[1])
if not ticket then return -1 end
local limit = '[' .. string.sub(ticket, 1, 10)
local before = redis.call('ZREVRANGEBYLEX', KEYS[5], '(' .. ticket, limit, 'LIMIT', 0, 1)[1]
if not before then return -1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[7], string.match(before, ' %d+ (.*)'))
if not ends or tonumber(ends) <= now then return -1 end
redis.call('ZADD', KEYS[7], now + ARGV[2], ARGV[1])
return tonumber(ends) - now
"""

WAITED: Final = """
-- Return how many claims are served before a claim, and the number and holder of each slot. Short for the same reason.
local own, ahead, from = redis.call('HGET', KEYS[6], ARGV[1]), 0, '-'
local order = own and string.sub(own, 11, 27) or '~'
while true do
  local ticket = redis.call('ZRANGEBYLEX', KEYS[5], from, '+', 'LIMIT', 0, 1)[1]
  if not ticket then break end
  local limit = string.sub(ticket, 1, 10)
  ahead = ahead + redis.call('ZLEXCOUNT', KEYS[5], '[' .. limit, '(' .. limit .. order)
  from = '(' .. limit .. '~'
end
return {ahead, redis.call('HGETALL', KEYS[3])}
"""

RENEW: Final = (
    _BASE
    + """
-- Let slots last. Return the numbers of those that others have, the time, and the number of slots of an older version.
-- One that has expired is taken again if it is free.
local lasts, settles, expected = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local slots, lost = cjson.decode(ARGV[4]), {}
-- A server whose memory is full allows writes after one that needs none: it must not lose slots. A run that holds none is
-- refused like a claim.
if #slots > 0 then keep() else call('HSET', SERVER, 'asked', now) end
follow_clock(expected, lasts, settles)
unsettled(settles)
expire()
for _, slot in ipairs(slots) do
  local holder = call('HGET', HOLDERS, slot.number)
  if holder and claim_of(holder) ~= slot.claim then
    lost[#lost + 1] = slot.number
  else
    take(slot.number, slot.claim, slot.words, now + lasts)
  end
end
keep(ENDS, TAKEN, HOLDERS, GRANTS)
wake()
return {lost, now, held_by_older_version()}
"""
)

DROP: Final = (
    _BASE
    + """
-- Release a slot of a claim, or all of its slots and its ticket.
local claim, number = ARGV[1], ARGV[2]
leave(claim)
local numbers = {number}
if number == '' then numbers = call('HKEYS', HOLDERS) end  -- a withdrawn claim may not know what it got: rare
for _, number in ipairs(numbers) do
  if claim_of(call('HGET', HOLDERS, number)) == claim then free(number) end
end
wake()
"""
)
