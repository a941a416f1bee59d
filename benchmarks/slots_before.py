"""The slots' Redis scripts before they used sorted sets: data for ``slots.py``, which compares the two.

Each look parses all slots and queue places, and each waiting claim looks several times a second.
"""

from typing import Final

KEYS: Final = ("slots", "queue", "count", "server")

LOOK: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function keep(key) redis.call('PEXPIRE', key, 86400000) end  -- a day after the last run, nothing is left
for number = 1, 3 do keep(KEYS[number]) end
local function put(key, name, value)  -- which may create the key, after all were kept
  redis.call('HSET', key, name, cjson.encode(value))
  keep(key)
end

-- Whether every process has had the time to renew its slots since this server started or lost its data. A server that
-- comes back empty or with an old snapshot knows none of them; the marker is missing or names an earlier start.
local function settled(milliseconds)
  local info = redis.pcall('INFO', 'server')  -- an account may not be allowed to
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or ''
  local text = redis.call('GET', KEYS[4])
  local marker = text and cjson.decode(text)
  if not marker or marker.run ~= run then marker = {run = run, ends = now + milliseconds} end
  redis.call('SET', KEYS[4], cjson.encode(marker), 'PX', 2592000000)  -- 30 days: else each quiet day costs a wait
  return now >= marker.ends
end

-- Take all or none; else take or renew a place in the queue when an urgency is given.
local claim, words, urgency = ARGV[1], ARGV[4], ARGV[5]
local count, most, ends = tonumber(ARGV[2]), tonumber(ARGV[3]), now + tonumber(ARGV[6])
local taken, held, mine = {}, {}, {}
local slots = redis.call('HGETALL', KEYS[1])
for i = 1, #slots, 2 do
  local number, slot = tonumber(slots[i]), cjson.decode(slots[i + 1])
  if slot.claim == claim then
    mine[#mine + 1] = number
  elseif slot.ends <= now then
    redis.call('HDEL', KEYS[1], slots[i])
  else
    taken[number] = true
    if number < most then held[#held + 1] = slot.words end
  end
end
if #mine > 0 then return {1, 0, 0, mine, 1} end  -- the answer to an earlier look was lost

local places, own = {}, nil
local queue = redis.call('HGETALL', KEYS[2])
for i = 1, #queue, 2 do
  local place = cjson.decode(queue[i + 1])
  if queue[i] == claim then
    own = place
  elseif place.ends <= now then
    redis.call('HDEL', KEYS[2], queue[i])
  else
    places[#places + 1] = place
  end
end
if urgency ~= '' then
  own = own or {number = redis.call('INCR', KEYS[3]), most = most}
  keep(KEYS[3])
  own.urgency, own.ends = tonumber(urgency), ends
end
local first, ahead = 0, 0
for _, place in ipairs(places) do
  if not own or place.urgency < own.urgency or (place.urgency == own.urgency and place.number < own.number) then
    first, ahead = math.max(first, place.most), ahead + 1
  end
end

local free = {}
for number = first, most - 1 do
  if #free < count and not taken[number] then free[#free + 1] = number end
end
local ready = #free < count or settled(tonumber(ARGV[7]))
if #free == count and ready then
  redis.call('HDEL', KEYS[2], claim)
  for _, number in ipairs(free) do
    put(KEYS[1], number, {ends = ends, claim = claim, words = words})
  end
  return {1, 0, 0, free, 1}
end
if own then put(KEYS[2], claim, own) end
return {0, first, ahead, held, ready and 1 or 0}
"""

DROP: Final = """
-- Release the slots of a claim, one or all, and its place.
redis.call('HDEL', KEYS[2], ARGV[1])
local slots = redis.call('HGETALL', KEYS[1])
for i = 1, #slots, 2 do
  if cjson.decode(slots[i + 1]).claim == ARGV[1] and (ARGV[2] == '' or ARGV[2] == slots[i]) then
    redis.call('HDEL', KEYS[1], slots[i])
  end
end
"""
