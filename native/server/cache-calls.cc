// Calls by which JavaScript fills the response cache (response-cache.h). Every number is checked: a place that is
// none, a length that does not fit or a bound that is no 32-bit number is an exception, and nothing was put.
#include <errno.h>
#include <sys/random.h>

#include <utility>

#include "listener.h"

namespace server {

namespace {

constexpr size_t kCellsMax = 1 << 16;
constexpr size_t kCellBytesMax = size_t{1} << 30;

// The numbers of one answer, in order; then four for each condition.
enum Number {
  kVariantOf, kIsHead, kIsStrict, kHostBytes, kTargetBytes, kTagBytes, kBeforeBytes, kAfterBytes, kShownBytes, kRegionOf, kOffset, kSizeBytes,
  kHasBody, kFrom, kUntil, kNotedCells, kNotedAt, kNotedBit, kTallyOf, kPriceOf, kResourceOne, kResourceTwo, kConditionCount,
  kFirstCondition
};
constexpr size_t kConditionNumbers = 4;

// Reads the numbers of an answer one by one; `good` is false after the first that is none.
struct Numbers {
  const double* start;
  bool good = true;

  uint64_t whole(size_t at, uint64_t most) {
    double found = start[at];
    bool fits = found >= 0 && found <= static_cast<double>(most) && found < kExact;
    good = good && fits && static_cast<double>(static_cast<uint64_t>(found)) == found;
    return good ? static_cast<uint64_t>(found) : 0;
  }
  int32_t bound(size_t at) {
    double found = start[at];
    bool fits = found >= INT32_MIN && found <= INT32_MAX;
    good = good && fits && static_cast<double>(static_cast<int32_t>(found)) == found;
    return good ? static_cast<int32_t>(found) : 0;
  }
};

bool readConditions(const std::vector<Cells>& known, Numbers* numbers, NewEntry* to) {
  to->conditionCount = static_cast<size_t>(numbers->whole(kConditionCount, kConditionsMax));
  for (size_t at = 0; at < to->conditionCount && numbers->good; at += 1) {
    size_t first = kFirstCondition + at * kConditionNumbers;
    size_t cells = static_cast<size_t>(numbers->whole(first, known.size() - 1));
    if (known.empty() || !numbers->good) return false;
    size_t place = static_cast<size_t>(numbers->whole(first + 1, known[cells].length - 1));
    to->conditions[at] = {known[cells].start + place, numbers->bound(first + 2), numbers->bound(first + 3)};
  }
  return numbers->good;
}

bool readNoted(const std::vector<Cells>& known, Numbers* numbers, NewEntry* to) {
  to->noted = nullptr;
  to->notedMask = 0;
  if (numbers->start[kNotedCells] < 0) return true;
  size_t cells = static_cast<size_t>(numbers->whole(kNotedCells, known.size() - 1));
  if (known.empty() || !numbers->good) return false;
  to->noted = known[cells].start + numbers->whole(kNotedAt, known[cells].length - 1);
  to->notedMask = static_cast<int32_t>(uint32_t{1} << numbers->whole(kNotedBit, 31));
  return numbers->good;
}

bool readBody(const ResponseCache& cache, Numbers* numbers, NewEntry* to) {
  if (cache.regions.empty() || cache.tallies.empty()) return false;
  to->region = static_cast<size_t>(numbers->whole(kRegionOf, cache.regions.size() - 1));
  to->tally = static_cast<size_t>(numbers->whole(kTallyOf, cache.tallies.size() - 1));
  to->sizeBytes = static_cast<size_t>(numbers->whole(kSizeBytes, static_cast<uint64_t>(kExact) - 1));
  to->hasBody = numbers->whole(kHasBody, 1) == 1;
  to->offset = 0;
  if (!numbers->good || !cache.regions[to->region].open) return false;
  if (!to->hasBody) return true;
  size_t length = cache.regions[to->region].length;
  if (to->sizeBytes == 0 || to->sizeBytes > length) return false;
  to->offset = static_cast<size_t>(numbers->whole(kOffset, length - to->sizeBytes));
  return numbers->good;
}

// The rules of limits, in order: of each kind of buckets the number of blocks; how many bits of an IPv6 address count; the key of the hash.
enum Rule { kIpBlocks, kResourceBlocks, kSixBits, kSecretLow, kSecretHigh, kRules };

// The buckets whose number of blocks is at `place`, in memory that is all of them.
Buckets readBuckets(int32_t* memory, size_t length, size_t place, int32_t holder, Numbers* numbers) {
  size_t blocks = static_cast<size_t>(numbers->whole(place, Buckets::kBlocksMax));
  bool isPower = blocks > 0 && (blocks & (blocks - 1)) == 0;
  bool isPlaced = reinterpret_cast<uintptr_t>(memory) % alignof(double) == 0 && length == Buckets::wordsFor(blocks);
  numbers->good = numbers->good && isPower && isPlaced;
  return Buckets(memory, isPower ? blocks : 1, holder);
}

bool readRanges(const int32_t* numbers, size_t count, std::vector<IpRange>* to) {
  if (count % 5 != 0) return false;
  for (size_t at = 0; at < count; at += 5) {
    IpRange made = {{{numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]}}, static_cast<uint32_t>(numbers[at + 4])};
    if (numbers[at + 4] < 0 || numbers[at + 4] > 128) return false;
    to->push_back(made);
  }
  return true;
}

bool readText(Numbers* numbers, size_t textBytes, const uint8_t* outbox, NewEntry* to) {
  size_t* lengths[6] = {&to->host, &to->target, &to->tag, &to->before, &to->after, &to->shown};
  size_t all = 0;
  for (size_t at = 0; at < 6; at += 1) {
    *lengths[at] = static_cast<size_t>(numbers->whole(kHostBytes + at, kEntryTextMax));
    all += *lengths[at];
  }
  to->text = reinterpret_cast<const char*>(outbox);
  return numbers->good && all == textBytes;
}

// Nothing is kept for a region any more, and its number may be another one's.
void letGo(Listener* listener, size_t region) {
  listener->server()->cacheState()->cache.regions[region].kept = false;
  for (size_t at = 0; at < kRegionRefs; at += 1) {
    napi_ref kept = std::exchange(listener->regions[kRegionRefs * region + at], nullptr);
    if (kept != nullptr) napi_delete_reference(listener->env, kept);
  }
}

}  // namespace

// cacheOpen(listener, maxBytes, plain, every): entries are put and answered from, from now on. `plain`: see plain-lines.h. `every`: header
// lines of every answer, each with CRLF in front.
napi_value cacheOpen(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheOpen");
  Server* server = serverOf(arguments);
  size_t maxBytes = static_cast<size_t>(arguments.integer(1, 1, kCacheBytesMax));
  std::string plain = arguments.text(2, kEntryTextMax), every = arguments.text(3, kEntryTextMax);
  if (!arguments.good || server == nullptr) return nullptr;
  if (server->cacheState() != nullptr) return fail(env, "cacheOpen", EALREADY);
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) return fail(env, "getrandom", errno);
  server->openCache(maxBytes, seed, plain, std::move(every));
  return nullptr;
}

// cacheCells(listener, cells) -> the number by which conditions name this Int32Array of shared memory
napi_value cacheCells(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheCells");
  Listener* listener = listenerOf(arguments);
  auto found = arguments.shared<int32_t>(1, napi_int32_array, "is no Int32Array");
  if (!arguments.good || listener == nullptr) return nullptr;
  std::vector<Cells>& cells = listener->server()->cacheState()->cells;
  if (found.count == 0 || cells.size() == kCellsMax) return arguments.wrong(1, "cannot be kept", true), nullptr;
  if (keep(env, arguments, 1, &listener->kept) == nullptr) return nullptr;
  cells.push_back({found.start, found.count});
  return numberOf(env, static_cast<double>(cells.size() - 1));
}

// cacheTally(listener, meters, places, bounds, kind) -> the number of a tally. `meters`: Float64Array of shared memory; `places` in it: those of
// `Count`, then that of the first bucket; `bounds` of the buckets, in seconds.
napi_value cacheTally(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheTally");
  Listener* listener = listenerOf(arguments);
  auto meters = arguments.shared<double>(1, napi_float64_array, "is no Float64Array");
  auto places = arguments.elements<double>(2, napi_float64_array, "is no Float64Array");
  auto bounds = arguments.elements<double>(3, napi_float64_array, "is no Float64Array");
  uint32_t kind = static_cast<uint32_t>(arguments.integer(4, 0, UINT32_MAX));
  if (arguments.good && places.count != kCounts + 1) arguments.wrong(2, "has another length", true);
  if (!arguments.good || listener == nullptr) return nullptr;
  Numbers numbers{places.start};
  Tally tally{};
  size_t buckets = bounds.count + 2;
  if (meters.count < buckets) return arguments.wrong(1, "is too short", true), nullptr;
  for (size_t at = 0; at < kCounts; at += 1) {
    bool isNone = at == kNames && places.start[at] == -1;
    tally.at[at] = isNone ? nullptr : meters.start + numbers.whole(at, meters.count - 1);
  }
  tally.buckets = meters.start + numbers.whole(kCounts, meters.count - buckets);
  tally.kind = kind;
  tally.bounds.assign(bounds.start, bounds.start + bounds.count);
  std::vector<Tally>& all = listener->server()->cacheState()->cache.tallies;
  if (!numbers.good || all.size() == kCellsMax) return arguments.wrong(2, "names no places", true), nullptr;
  if (keep(env, arguments, 1, &listener->kept) == nullptr) return nullptr;
  all.push_back(tally);
  return numberOf(env, static_cast<double>(all.size() - 1));
}

// cacheRegion(listener, memory, here, ticks, cellBytes, key) -> the number of a region: bodies may lie in `memory`, a Uint8Array, which must
// stay where it is until `cacheClose`. `here`, `ticks`: shared memory as in region.h.
napi_value cacheRegion(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheRegion");
  Listener* listener = listenerOf(arguments);
  Bytes memory = arguments.bytes(1);
  auto here = arguments.shared<int32_t>(2, napi_int32_array, "is no Int32Array");
  auto ticks = arguments.shared<int32_t>(3, napi_int32_array, "is no Int32Array");
  size_t cellBytes = static_cast<size_t>(arguments.integer(4, 1, kCellBytesMax));
  uint64_t key = arguments.integer(5, 0, static_cast<uint64_t>(kExact) - 1);
  if (!arguments.good || listener == nullptr) return nullptr;
  bool fits = memory.length > 0 && here.count >= (memory.length + cellBytes - 1) / cellBytes;
  if (!fits) return arguments.wrong(2, "has too few cells", true), nullptr;
  if (ticks.count < kTickNumbers) return arguments.wrong(3, "has too few numbers", true), nullptr;
  napi_ref kept[kRegionRefs] = {};
  for (size_t at = 0; at < kRegionRefs; at += 1) {
    if (napi_create_reference(env, arguments.at(1 + at), 1, &kept[at]) != napi_ok) return nullptr;
  }
  Region region{memory.data, memory.length, here.start, cellBytes, ticks.start, 0, true, true, key};
  size_t made = listener->server()->cacheState()->cache.open(region);
  if (listener->regions.size() < kRegionRefs * (made + 1)) listener->regions.resize(kRegionRefs * (made + 1), nullptr);
  for (size_t at = 0; at < kRegionRefs; at += 1) listener->regions[kRegionRefs * made + at] = kept[at];
  return numberOf(env, static_cast<double>(made));
}

// cacheClose(listener, region) -> true where nothing is sent out of it any more. From now on no entry out of it is used; where some are on
// their way, its memory must stay, and it is to be closed again.
napi_value cacheClose(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheClose");
  Listener* listener = listenerOf(arguments);
  if (!arguments.good) return nullptr;
  bool isOver = true;
  if (listener != nullptr) {
    ResponseCache& cache = listener->server()->cacheState()->cache;
    if (cache.regions.empty()) return arguments.wrong(1, "is no region", true), nullptr;
    size_t region = static_cast<size_t>(arguments.integer(1, 0, cache.regions.size() - 1));
    if (!arguments.good) return nullptr;
    cache.close(region);
    isOver = cache.regions[region].sending == 0;
    if (isOver) letGo(listener, region);
  }
  napi_value result;
  napi_get_boolean(env, isOver, &result);
  return result;
}

// cachePut(listener, numbers, textBytes): an answer as `Number` has it, whose text lies at the start of the outbox.
napi_value cachePut(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cachePut");
  Listener* listener = listenerOf(arguments);
  auto given = arguments.elements<double>(1, napi_float64_array, "is no Float64Array");
  size_t textBytes = static_cast<size_t>(arguments.integer(2, 1, kEntryTextMax));
  if (arguments.good && given.count != kFirstCondition + kConditionNumbers * kConditionsMax) arguments.wrong(1, "has another length", true);
  if (!arguments.good || listener == nullptr) return nullptr;
  if (textBytes > listener->server()->outboxLength()) return arguments.wrong(2, "is more than the outbox has", true), nullptr;
  ResponseCache& cache = listener->server()->cacheState()->cache;
  const std::vector<Cells>& cells = listener->server()->cacheState()->cells;
  Numbers numbers{given.start};
  NewEntry made{};
  made.variant = static_cast<Variant>(numbers.whole(kVariantOf, kVariants - 1));
  made.isHead = numbers.whole(kIsHead, 1) == 1;
  made.strict = numbers.whole(kIsStrict, 1) == 1;
  made.price = static_cast<Price>(numbers.whole(kPriceOf, kPrices - 1));
  made.resource[0] = numbers.bound(kResourceOne);
  made.resource[1] = numbers.bound(kResourceTwo);
  made.from = static_cast<int64_t>(numbers.whole(kFrom, static_cast<uint64_t>(kExact) - 1));
  made.until = static_cast<int64_t>(numbers.whole(kUntil, static_cast<uint64_t>(kExact) - 1));
  bool good = readText(&numbers, textBytes, listener->server()->outbox(), &made) && readBody(cache, &numbers, &made) &&
              readNoted(cells, &numbers, &made) && readConditions(cells, &numbers, &made);
  if (!good || !numbers.good) return arguments.wrong(1, "describes no answer", true), nullptr;
  cache.put(made);
  return nullptr;
}

// cacheLimits(listener, ip, resource, rules, trusted, exempt, meters, places): from now on answers may have a price. `ip`, `resource`: the
// memory of the two tables of buckets; `rules`: see `Rule`; `trusted`, `exempt`: ranges of addresses, four words and the number of bits
// each; `places` in `meters`: answers judged, tokens of clients, tokens of resources. To be called once.
napi_value cacheLimits(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheLimits");
  Listener* listener = listenerOf(arguments);
  auto ip = arguments.shared<int32_t>(1, napi_int32_array, "is no Int32Array");
  auto resource = arguments.shared<int32_t>(2, napi_int32_array, "is no Int32Array");
  auto rules = arguments.elements<double>(3, napi_float64_array, "is no Float64Array");
  auto trusted = arguments.elements<int32_t>(4, napi_int32_array, "is no Int32Array");
  auto exempt = arguments.elements<int32_t>(5, napi_int32_array, "is no Int32Array");
  auto meters = arguments.shared<double>(6, napi_float64_array, "is no Float64Array");
  auto places = arguments.elements<double>(7, napi_float64_array, "is no Float64Array");
  if (arguments.good && rules.count != kRules) arguments.wrong(3, "has another length", true);
  if (arguments.good && places.count != 3) arguments.wrong(7, "has another length", true);
  if (!arguments.good || listener == nullptr) return nullptr;
  Numbers given{rules.start}, counted{places.start};
  std::vector<IpRange> ranges[2];
  bool good = readRanges(trusted.start, trusted.count, &ranges[0]) && readRanges(exempt.start, exempt.count, &ranges[1]);
  int32_t holder = ownHolder();
  if (holder <= 0) return fail(env, "/proc/self/task", holder == 0 ? ENOENT : EMFILE);
  Buckets buckets[2] = {readBuckets(ip.start, ip.count, kIpBlocks, holder, &given),
                        readBuckets(resource.start, resource.count, kResourceBlocks, holder, &given)};
  uint32_t sixBits = static_cast<uint32_t>(given.whole(kSixBits, 128));
  uint32_t low = static_cast<uint32_t>(given.bound(kSecretLow)), high = static_cast<uint32_t>(given.bound(kSecretHigh));
  double* at[3] = {nullptr, nullptr, nullptr};
  for (size_t each = 0; each < 3 && meters.count > 0; each += 1) at[each] = meters.start + counted.whole(each, meters.count - 1);
  if (!good || !given.good || !counted.good || meters.count == 0) return arguments.wrong(3, "describes no limits", true), nullptr;
  if (listener->server()->cacheState()->limits != nullptr) return fail(env, "cacheLimits", EALREADY);
  for (size_t each : {1, 2, 6}) {
    if (keep(env, arguments, each, &listener->kept) == nullptr) return nullptr;
  }
  listener->server()->cacheState()->limits.reset(
      new Limited{buckets[0], buckets[1], ranges[0], ranges[1], sixBits, low, high, at[0], at[1], at[2]});
  return nullptr;
}

// cacheClients(listener, trusted, exempt): other lists in place of those of `cacheLimits`, for open connections, too.
napi_value cacheClients(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheClients");
  Listener* listener = listenerOf(arguments);
  auto trusted = arguments.elements<int32_t>(1, napi_int32_array, "is no Int32Array");
  auto exempt = arguments.elements<int32_t>(2, napi_int32_array, "is no Int32Array");
  if (!arguments.good || listener == nullptr) return nullptr;
  std::vector<IpRange> ranges[2];
  if (!readRanges(trusted.start, trusted.count, &ranges[0])) return arguments.wrong(1, "describes no ranges", true), nullptr;
  if (!readRanges(exempt.start, exempt.count, &ranges[1])) return arguments.wrong(2, "describes no ranges", true), nullptr;
  if (listener->server()->cacheState()->limits == nullptr) return fail(env, "cacheClients", ENOENT);
  listener->server()->cacheState()->limits->replace(std::move(ranges[0]), std::move(ranges[1]));
  return nullptr;
}

// cacheSamples(listener) -> [[ms, bytes, count, target], ...] since the last call
napi_value cacheSamples(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheSamples");
  Listener* listener = listenerOf(arguments);
  if (!arguments.good) return nullptr;
  napi_value result;
  napi_create_array(env, &result);
  if (listener == nullptr) return result;
  std::vector<Sample> samples = std::exchange(listener->server()->cacheState()->samples, {});
  for (size_t at = 0; at < samples.size(); at += 1) {
    const Sample& each = samples[at];
    napi_value made, target;
    napi_create_array_with_length(env, 4, &made);
    napi_create_string_latin1(env, each.target.data(), each.target.size(), &target);
    napi_set_element(env, made, 0, numberOf(env, each.ms));
    napi_set_element(env, made, 1, numberOf(env, each.bytes));
    napi_set_element(env, made, 2, numberOf(env, each.count));
    napi_set_element(env, made, 3, target);
    napi_set_element(env, result, static_cast<uint32_t>(at), made);
  }
  return result;
}

// cacheUsage(listener) -> [answers, bytes of them, answers that clients have not taken whole]
napi_value cacheUsage(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheUsage");
  Listener* listener = listenerOf(arguments);
  if (!arguments.good) return nullptr;
  double sizes[3] = {0, 0, 0};
  if (listener != nullptr) {
    sizes[0] = static_cast<double>(listener->server()->cacheState()->cache.count());
    sizes[1] = static_cast<double>(listener->server()->cacheState()->cache.bytes());
    sizes[2] = static_cast<double>(listener->server()->cacheState()->unfinished);
  }
  napi_value result;
  napi_create_array_with_length(env, 3, &result);
  for (uint32_t at = 0; at < 3; at += 1) napi_set_element(env, result, at, numberOf(env, sizes[at]));
  return result;
}

}  // namespace server
