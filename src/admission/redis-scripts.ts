/**
 * What Redis does with buckets, each in one step. A bucket is a hash: `l` thousandths of tokens that it lacks, `t` the
 * millisecond when that was so, `p` paid tokens; numbers stay whole and below 2^53. Buckets without paid tokens expire when they
 * are full; those with some never do. Time is that of Redis: gateways need not agree on it. Where its clock was ahead, the next
 * look at a bucket corrects `t`: one that is empty is not written to otherwise, and would not refill until that time. A bucket
 * lacks as much as a full one has, also where it was larger when that was taken.
 */
const prelude = `
local function whole(x) return string.format('%.0f', x) end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function read(key, rate)
  local h = redis.call('HMGET', key, 'l', 't', 'p')
  local at = tonumber(h[2]) or now
  if at > now then redis.call('HSET', key, 't', whole(now)) end
  local gone = math.max(0, now - at)
  return math.max(0, (tonumber(h[1]) or 0) - gone * rate), tonumber(h[3]) or 0, h[2] ~= false
end
local function write(key, lacking, paid, rate)
  redis.call('HSET', key, 'l', whole(lacking), 't', whole(now), 'p', whole(paid))
  if paid > 0 then redis.call('PERSIST', key)
  elseif rate > 0 then redis.call('PEXPIRE', key, whole(math.ceil(lacking / rate) + 60000))
  else redis.call('PEXPIRE', key, '2592000000') end
end
local function regular(lacking, capacity) return math.max(0, math.floor(capacity - lacking / 1000)) end
local function wait(tokens, lacking, paid, capacity, rate)
  if tokens > capacity + paid or rate == 0 then return -1 end
  return math.max(1, math.ceil((tokens - paid - regular(lacking, capacity)) / rate))
end
`

/**
 * Keys: the client's bucket, the resource's. Arguments: tokens, 1 where only the client's counts, capacity and refill a second of
 * both. Answers `{1, regular, paid, resource's regular, resource's paid}` or `{0, 1 (client) or 2 (resource), seconds or -1}`.
 * Where the resource's bucket is short, a client with half of its regular tokens (`hasUsedLittle`) takes nothing of it.
 */
const take = `${prelude}
local n, only = tonumber(ARGV[1]), ARGV[2] == '1'
local icap, irate, rcap, rrate = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local ilack, ipaid = read(KEYS[1], irate)
ilack = math.min(ilack, icap * 1000)
local free = math.min(regular(ilack, icap), n)
local due = n - free
if due > ipaid then return {0, 1, wait(n, ilack, ipaid, icap, irate)} end
if only or due > 0 then
  write(KEYS[1], ilack + free * 1000, ipaid - due, irate)
  return {1, free, due, 0, 0}
end
local rlack, rpaid = read(KEYS[2], rrate)
rlack = math.min(rlack, rcap * 1000)
local rfree = math.min(regular(rlack, rcap), n)
local rdue = n - rfree
if rdue <= rpaid then
  write(KEYS[1], ilack + n * 1000, ipaid, irate)
  write(KEYS[2], rlack + rfree * 1000, rpaid - rdue, rrate)
  return {1, n, 0, rfree, rdue}
end
local little = math.ceil(icap / 2)
if regular(ilack, icap) >= little then
  write(KEYS[1], ilack + n * 1000, ipaid, irate)
  return {1, n, 0, 0, 0}
end
if ipaid >= n then
  write(KEYS[1], ilack, ipaid - n, irate)
  return {1, 0, n, 0, 0}
end
local until_resource, until_little = wait(n, rlack, rpaid, rcap, rrate), wait(little, ilack, 0, icap, irate)
if until_resource < 0 then return {0, 2, until_little} end
if until_little < 0 then return {0, 2, until_resource} end
return {0, 2, math.min(until_resource, until_little)}
`

/** Keys: both buckets. Arguments: regular and paid tokens for each, refill a second of each. */
const give = `${prelude}
for at = 1, 2 do
  local free, paid, rate = tonumber(ARGV[at * 2 - 1]), tonumber(ARGV[at * 2]), tonumber(ARGV[at + 4])
  if free + paid > 0 then
    local lacking, had, known = read(KEYS[at], rate)
    if known or paid > 0 then write(KEYS[at], math.max(0, lacking - free * 1000), had + paid, rate) end
  end
end
return 1
`

/**
 * Keys: the payment's mark, the bucket. Arguments: tokens, refill a second, seconds that the mark lasts, what the mark states. 1:
 * added. Older releases read only whether there is a mark.
 */
const credit = `${prelude}
if not redis.call('SET', KEYS[1], ARGV[4], 'NX', 'EX', ARGV[3]) then return 0 end
local rate = tonumber(ARGV[2])
local lacking, paid = read(KEYS[2], rate)
write(KEYS[2], lacking, paid + tonumber(ARGV[1]), rate)
return 1
`

/** Key: a bucket. Arguments: capacity, refill a second. Answers `{tokens, paid}`, or nothing. */
const look = `${prelude}
local lacking, paid, known = read(KEYS[1], tonumber(ARGV[2]))
if not known then return {} end
return {regular(lacking, tonumber(ARGV[1])), paid}
`

/**
 * Keys: what a payment is bound to, the name of all gateways that use this Redis, the gateways that requested its settlement,
 * each with a time. Arguments: the beneficiary, the name where there is none, seconds to keep all of it, the calling gateway. The
 * first call binds, and a call for the same beneficiary requests. Gateways of older releases take over what was requested a
 * minute ago for whoever brings it: by the time that is written they always wait. Answers the beneficiary, the name of the
 * owner, the present name.
 */
const bind = `${prelude}
redis.call('SET', KEYS[2], ARGV[2], 'NX')
local name = redis.call('GET', KEYS[2])
redis.call('HSETNX', KEYS[1], 'beneficiary', ARGV[1])
redis.call('HSETNX', KEYS[1], 'owner', name)
redis.call('EXPIRE', KEYS[1], ARGV[3])
local whose = redis.call('HGET', KEYS[1], 'beneficiary')
if whose == ARGV[1] then
  redis.call('HSET', KEYS[3], ARGV[4], whole(now + tonumber(ARGV[3]) * 1000))
  redis.call('EXPIRE', KEYS[3], ARGV[3])
end
return {whose, redis.call('HGET', KEYS[1], 'owner'), name}
`

/** Keys: the gateways that requested it, what it is bound to. Argument: the one that withdraws its request. The last unbinds. */
const clear = `
local withdrawn = redis.call('HDEL', KEYS[1], ARGV[1])
if withdrawn == 1 and redis.call('EXISTS', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
return 1
`

/**
 * Keys: the same two, the payment's mark. Arguments: the calling gateway, the seconds of `bind`. Answers -2: the payment is
 * credited; -1: no other gateway requested its settlement; else the milliseconds since the last of them did. Then, each empty
 * where there is none: the mark, the beneficiary, the owner. A request of an older release is not bound, and counts as just made.
 */
const lookAt = `${prelude}
local bound = redis.call('HMGET', KEYS[2], 'beneficiary', 'owner')
local facts = {bound[1] or '', bound[2] or ''}
local mark = redis.call('GET', KEYS[3])
if mark then return {-2, mark, unpack(facts)} end
local requests = redis.call('HGETALL', KEYS[1])
local youngest = -1
for at = 1, #requests, 2 do
  local since = tonumber(requests[at + 1])
  if since > now then since = since - tonumber(ARGV[2]) * 1000 end
  local age = bound[1] and math.max(0, now - since) or 0
  if requests[at] ~= ARGV[1] and (youngest < 0 or age < youngest) then youngest = age end
end
return {youngest, '', unpack(facts)}
`

/** Key: the name of all gateways that use this Redis. Argument: what it becomes where there is none. Answers what it is. */
const house = `
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
`

/** For the client library, which sends a script's digest, and the script where Redis does not know it. */
export const bucketScripts = {
  bucketTake: { lua: take, numberOfKeys: 2 },
  bucketGive: { lua: give, numberOfKeys: 2 },
  bucketCredit: { lua: credit, numberOfKeys: 2 },
  bucketLook: { lua: look, numberOfKeys: 1 },
  paymentBind: { lua: bind, numberOfKeys: 3 },
  paymentClear: { lua: clear, numberOfKeys: 2 },
  paymentLook: { lua: lookAt, numberOfKeys: 3 },
  paymentHouse: { lua: house, numberOfKeys: 1 },
}

/** The commands that the scripts become. Each rejects where Redis cannot be reached. */
export interface BucketCommands {
  bucketTake(ip: string, resource: string, ...rest: number[]): Promise<number[]>
  bucketGive(ip: string, resource: string, ...rest: number[]): Promise<number>
  bucketCredit(mark: string, bucket: string, ...rest: (number | string)[]): Promise<number>
  bucketLook(bucket: string, ...rest: number[]): Promise<number[]>
  paymentBind(
    bound: string,
    house: string,
    requested: string,
    ...rest: (number | string)[]
  ): Promise<[string, string, string]>
  paymentClear(requested: string, bound: string, who: string): Promise<number>
  paymentLook(
    requested: string,
    bound: string,
    mark: string,
    who: string,
    seconds: number,
  ): Promise<[number, string, string, string]>
  paymentHouse(key: string, name: string): Promise<string>
}
