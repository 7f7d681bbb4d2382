// Words of the index in bulk: their order, and the number of each in a table. See README.md for why and how fast.
#include <node_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../calls.h"

namespace {

constexpr uint64_t kTextsMax = 0xffffffff;
// Of a word in a message: field, where it begins, where it ends.
constexpr size_t kTriple = 3;
// The field of a tag, whose bytes are name and value, each behind its length (src/index/word-key.ts).
constexpr uint32_t kTag = 4;
// Below so many texts insertion is faster than a sort by keys.
constexpr size_t kFew = 16;
// Words ahead for which memory is fetched.
constexpr size_t kAhead = 12;

napi_value refuse(napi_env env, const char* what) {
  napi_throw_range_error(env, nullptr, what);
  return nullptr;
}

struct Texts {
  const uint8_t* bytes;
  const uint32_t* starts;

  uint32_t length(uint32_t text) const { return starts[text + 1] - starts[text]; }
};

// Eight bytes from `depth` on, zeros behind the end; the first byte is the highest.
uint64_t keyAt(const Texts& texts, uint32_t text, uint32_t depth) {
  uint32_t length = texts.length(text);
  if (depth >= length) return 0;
  const uint8_t* from = texts.bytes + texts.starts[text] + depth;
  uint64_t key = 0;
  uint32_t left = length - depth;
  memcpy(&key, from, left < 8 ? left : 8);
  return __builtin_bswap64(key);
}

// Whether `one` comes before `other`; both have the same first `depth` bytes, as far as they go.
bool isBefore(const Texts& texts, uint32_t one, uint32_t other, uint32_t depth) {
  uint32_t length = texts.length(one), otherLength = texts.length(other);
  uint32_t least = std::min(length, otherLength);
  if (least > depth) {
    int order = memcmp(texts.bytes + texts.starts[one] + depth, texts.bytes + texts.starts[other] + depth, least - depth);
    if (order != 0) return order < 0;
  }
  return length < otherLength;
}

struct Keyed {
  uint64_t key;
  uint32_t text;
};

struct Range {
  uint32_t from, end, depth;
};

void insertion(const Texts& texts, uint32_t* order, const Range& range) {
  for (uint32_t at = range.from + 1; at < range.end; at += 1) {
    uint32_t text = order[at], to = at;
    for (; to > range.from && isBefore(texts, text, order[to - 1], range.depth); to -= 1) order[to] = order[to - 1];
    order[to] = text;
  }
}

// So many bytes behind `depth` all texts share: those of a tag share its name.
uint32_t sharedBehind(const Texts& texts, const uint32_t* order, const Range& range) {
  uint32_t first = order[range.from], length = texts.length(first);
  if (length <= range.depth) return 0;
  const uint8_t* bytes = texts.bytes + texts.starts[first] + range.depth;
  uint32_t shared = length - range.depth;
  for (uint32_t at = range.from + 1; at < range.end && shared > 0; at += 1) {
    uint32_t other = texts.length(order[at]);
    if (other <= range.depth) return 0;
    const uint8_t* others = texts.bytes + texts.starts[order[at]] + range.depth;
    shared = std::min(shared, other - range.depth);
    uint32_t same = 0;
    while (same < shared && bytes[same] == others[same]) same += 1;
    shared = same;
  }
  return shared;
}

// Sorts by eight bytes at a time, those that are the same by the next eight. Ranges wait in memory of their own, because texts
// may have any length.
void sortTexts(const Texts& texts, uint32_t* order, uint32_t count) {
  std::vector<Range> waiting{{0, count, 0}};
  std::vector<Keyed> keyed;
  while (!waiting.empty()) {
    Range range = waiting.back();
    waiting.pop_back();
    uint32_t size = range.end - range.from;
    if (size <= kFew) {
      insertion(texts, order, range);
      continue;
    }
    range.depth += sharedBehind(texts, order, range);
    keyed.resize(size);
    bool isOver = true;
    for (uint32_t at = 0; at < size; at += 1) {
      uint32_t text = order[range.from + at];
      if (texts.length(text) > range.depth) isOver = false;
      keyed[at] = {keyAt(texts, text, range.depth), text};
    }
    if (isOver) {
      auto isShorter = [&](uint32_t one, uint32_t other) { return texts.length(one) < texts.length(other); };
      std::sort(order + range.from, order + range.end, isShorter);
      continue;
    }
    std::sort(keyed.begin(), keyed.end(), [](const Keyed& one, const Keyed& other) { return one.key < other.key; });
    uint32_t since = 0;
    for (uint32_t at = 0; at < size; at += 1) {
      order[range.from + at] = keyed[at].text;
      if (at + 1 < size && keyed[at + 1].key == keyed[at].key) continue;
      if (at > since) waiting.push_back({range.from + since, range.from + at + 1, range.depth + 8});
      since = at + 1;
    }
  }
}

// sort(bytes, starts, order): fills `order` with the numbers of the texts, the least first. Text `at` lies from `starts[at]` to
// `starts[at + 1]` of `bytes`; no two are the same.
napi_value sort(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "sort");
  Bytes bytes = arguments.bytes(0);
  auto starts = arguments.elements<uint32_t>(1, napi_uint32_array, "is no Uint32Array");
  auto order = arguments.elements<uint32_t>(2, napi_uint32_array, "is no Uint32Array");
  if (!arguments.good) return nullptr;
  if (order.count >= starts.count) return refuse(env, "texts without a start");
  if (order.count >= kTextsMax) return refuse(env, "too many texts");
  // Starts were checked once. They must not change while the order is written.
  bool isApart = starts.start + starts.count <= order.start || order.start + order.count <= starts.start;
  if (order.count > 0 && !isApart) return refuse(env, "memory is given twice");
  for (size_t at = 0; at < order.count; at += 1) {
    if (starts.start[at] > starts.start[at + 1]) return refuse(env, "a text ends before it begins");
    order.start[at] = static_cast<uint32_t>(at);
  }
  if (starts.start[order.count] > bytes.length) return refuse(env, "a text ends behind the bytes");
  sortTexts(Texts{bytes.data, starts.start}, order.start, static_cast<uint32_t>(order.count));
  return nullptr;
}

uint32_t rotated(uint32_t value, int bits) { return (value << bits) | (value >> (32 - bits)); }

struct Sip {
  uint32_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = rotated(v1, 5) ^ v0;
    v0 = rotated(v0, 16);
    v2 += v3;
    v3 = rotated(v3, 8) ^ v2;
    v0 += v3;
    v3 = rotated(v3, 7) ^ v0;
    v2 += v1;
    v1 = rotated(v1, 13) ^ v2;
    v2 = rotated(v2, 16);
  }

  void block(uint32_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  }
};

// HalfSipHash with one round a block and three at the end: the first half of what src/format/half-sip-hash.ts gives.
uint32_t hashOf(const uint8_t* bytes, size_t size, uint32_t low, uint32_t high) {
  Sip sip{low, high ^ 0xee, low ^ 0x6c796765, high ^ 0x74656462};
  size_t at = 0;
  for (; at + 4 <= size; at += 4) {
    uint32_t word;
    memcpy(&word, bytes + at, 4);
    sip.block(word);
  }
  uint32_t last = static_cast<uint32_t>(size) << 24;
  for (int shift = 0; at < size; at += 1, shift += 8) last |= static_cast<uint32_t>(bytes[at]) << shift;
  sip.block(last);
  sip.v2 ^= 0xee;
  for (int left = 3; left > 0; left -= 1) sip.round();
  return sip.v1 ^ sip.v3;
}

struct Cut {
  uint32_t from, end, valueFrom;
};

// Where name and value of a tag are; false where its lengths do not fit.
bool cutTag(const Bytes& message, uint32_t from, uint32_t to, Cut& cut) {
  uint64_t size = 0;
  uint32_t at = from;
  for (int shift = 0;; shift += 7, at += 1) {
    if (at >= to || shift > 28) return false;
    size |= static_cast<uint64_t>(message.data[at] & 0x7f) << shift;
    if (message.data[at] < 0x80) break;
  }
  if (size > static_cast<uint64_t>(to) - at - 1) return false;
  uint32_t end = at + 1 + static_cast<uint32_t>(size), value = end;
  while (value < to && message.data[value] >= 0x80) value += 1;
  if (value >= to) return false;
  cut = {from, end, value + 1};
  return true;
}

// The table of the words of a batch (src/index/word-batch.ts), in memory of JavaScript.
struct Table {
  Bytes keys;
  Arguments::Elements<uint32_t> starts;
  Arguments::Elements<int32_t> hashes, slots;
  uint32_t count;

  // Nothing is read or written outside of it, whatever is in it.
  bool isSound(size_t more) const {
    size_t all = static_cast<size_t>(count) + more;
    bool isPower = slots.count > 0 && (slots.count & (slots.count - 1)) == 0;
    return isPower && all < slots.count && all < starts.count && all <= hashes.count && starts.start[count] <= keys.length;
  }

  bool isSame(uint32_t word, const uint8_t* key, size_t size) const {
    uint32_t from = starts.start[word], to = starts.start[word + 1];
    return from <= to && to - from == size && to <= keys.length && memcmp(keys.data + from, key, size) == 0;
  }

  // The number of a word: a new one where it is not there. -1: there is no room.
  int64_t intern(const uint8_t* key, size_t size, uint32_t hash) {
    size_t mask = slots.count - 1, slot = hash & mask;
    for (size_t tried = 0; slots.start[slot] != 0; slot = (slot + 1) & mask, tried += 1) {
      uint32_t word = static_cast<uint32_t>(slots.start[slot]) - 1;
      if (word >= count || tried > mask) return -1;
      if (static_cast<uint32_t>(hashes.start[word]) == hash && isSame(word, key, size)) return word;
    }
    uint32_t from = starts.start[count];
    if (from > keys.length || size > keys.length - from) return -1;
    memcpy(keys.data + from, key, size);
    slots.start[slot] = static_cast<int32_t>(count + 1);
    hashes.start[count] = static_cast<int32_t>(hash);
    starts.start[count + 1] = from + static_cast<uint32_t>(size);
    count += 1;
    return count - 1;
  }

  void fetch(uint32_t hash) const { __builtin_prefetch(&slots.start[hash & (slots.count - 1)]); }
};

// Keys of the words of a message, one behind the other.
struct Keys {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> ends, hashes;

  bool read(const Bytes& message, const Arguments::Elements<uint32_t>& words, uint32_t low, uint32_t high) {
    for (size_t at = 0; at < words.count; at += kTriple) {
      uint32_t field = words.start[at], from = words.start[at + 1], to = words.start[at + 2];
      if (field > 0xff || from > to || to > message.length) return false;
      size_t start = bytes.size();
      bytes.push_back(static_cast<uint8_t>(field));
      Cut cut{from, to, to};
      if (field == kTag && !cutTag(message, from, to, cut)) return false;
      bytes.insert(bytes.end(), message.data + cut.from, message.data + cut.end);
      bytes.insert(bytes.end(), message.data + cut.valueFrom, message.data + to);
      ends.push_back(static_cast<uint32_t>(bytes.size()));
      hashes.push_back(hashOf(bytes.data() + start, bytes.size() - start, low, high));
    }
    return true;
  }
};

// intern(keys, starts, hashes, slots, count, secret, message, words, numbers) -> how many words there are then: `numbers` gets the
// number of each word of a message. `words`: field, start and end of each. The caller made room for all of them.
napi_value intern(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "intern");
  Table table;
  table.keys = arguments.bytes(0);
  table.starts = arguments.elements<uint32_t>(1, napi_uint32_array, "is no Uint32Array");
  table.hashes = arguments.elements<int32_t>(2, napi_int32_array, "is no Int32Array");
  table.slots = arguments.elements<int32_t>(3, napi_int32_array, "is no Int32Array");
  table.count = static_cast<uint32_t>(arguments.integer(4, 0, 0x7ffffffe));
  auto secret = arguments.elements<int32_t>(5, napi_int32_array, "is no Int32Array");
  Bytes message = arguments.bytes(6);
  auto words = arguments.elements<uint32_t>(7, napi_uint32_array, "is no Uint32Array");
  auto numbers = arguments.elements<uint32_t>(8, napi_uint32_array, "is no Uint32Array");
  if (!arguments.good) return nullptr;
  if (secret.count != 2) return refuse(env, "the secret has two numbers");
  if (words.count % kTriple != 0 || numbers.count != words.count / kTriple) return refuse(env, "three numbers make a word");
  if (!table.isSound(numbers.count)) return refuse(env, "the table has no room");
  uint32_t low = static_cast<uint32_t>(secret.start[0]), high = static_cast<uint32_t>(secret.start[1]);
  Keys keys;
  if (!keys.read(message, words, low, high)) return refuse(env, "a word does not fit into the message");
  for (size_t at = 0, from = 0; at < numbers.count; at += 1) {
    if (at + kAhead < numbers.count) table.fetch(keys.hashes[at + kAhead]);
    int64_t number = table.intern(keys.bytes.data() + from, keys.ends[at] - from, keys.hashes[at]);
    if (number < 0) return refuse(env, "the table has no room");
    numbers.start[at] = static_cast<uint32_t>(number);
    from = keys.ends[at];
  }
  return numberOf(env, table.count);
}

}  // namespace

NAPI_MODULE_INIT() { return give(env, exports, {{"sort", sort}, {"intern", intern}}); }
