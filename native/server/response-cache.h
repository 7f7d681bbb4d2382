// The response cache: answers that JavaScript has made, sent again without it while nothing they rest on has changed. The cache
// decides nothing: it knows the numbers in shared memory that a decision was made by, and the values that they must have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "chains.h"
#include "packed.h"
#include "region.h"
#include "seal.h"

namespace server {

// Which of the answers to one method and target.
enum class Variant : uint8_t { kAll = 0, kUnchanged = 1, kPart = 2 };
constexpr uint64_t kVariants = 3;

// A number in shared memory must lie within these bounds.
struct Condition {
  const int32_t* cell;
  int32_t least, most;
};
constexpr size_t kConditionsMax = 16;
// Text of one answer: its key, its tag and its head.
constexpr size_t kEntryTextMax = 32 * 1024;
// Characters of the id of a request, which stands between the two parts of a head.
constexpr size_t kIdLength = 22;
// The last second of what is not signed and so has none.
constexpr int64_t kForever = (int64_t{1} << 53) - 2;
constexpr size_t kCacheBytesMax = size_t{1} << 40;
// Bytes of an answer without long lines of its own; and chains at most, however much memory there is.
constexpr size_t kUsualEntry = 512, kChainsMax = size_t{1} << 24;
// Answers that are spared for one that makes room.
constexpr size_t kSparedMax = 256;

// Where answers of one kind are counted, in the memory of the meters. This thread alone writes there.
enum Count { kWhole, kAborted, kLeft, kStalled, kBroken, kBodyBytes, kHits, kFromCache, kNames, kCounts };
struct Tally {
  // Null for names where none is needed.
  double* at[kCounts];
  // Of seconds: one bucket more than there are bounds, then the sum.
  double* buckets;
  std::vector<double> bounds;
  // The same for all threads that count the same; 0: nobody else does.
  uint32_t kind;
  void took(double seconds) const {
    size_t at = 0;
    while (at < bounds.size() && seconds > bounds[at]) at += 1;
    buckets[at] += 1;
    buckets[bounds.size() + 1] += seconds;
  }
};

// What limits make of an answer (limits.h): there are none; it is free for everybody; or its bytes are taken from buckets.
enum class Price : uint8_t { kNone = 0, kFree = 1, kTokens = 2 };
constexpr uint64_t kPrices = 3;

// An answer that is to be kept, as JavaScript describes it.
struct NewEntry {
  Variant variant;
  bool isHead, strict;
  // One behind the other: host, target, tag, the head before and after the request's id, and a name that samples show.
  const char* text;
  size_t host, target, tag, before, after, shown;
  size_t region, offset, sizeBytes;
  bool hasBody;
  int64_t from, until;
  int32_t* noted;
  int32_t notedMask;
  size_t tally;
  Price price;
  // Key of the resource's bucket.
  int32_t resource[2];
  Condition conditions[kConditionsMax];
  size_t conditionCount;
};

// The signature for HEAD of an answer to GET, and the first and last second in which it may be sent. All else of the two is the same.
struct HeadSeal {
  int64_t from, until;
  Seal seal;
};

// Behind it lie its text (host, target, tag, and the name that samples show), its conditions, its signature where it has one, the steps by
// which its head is put together, and the bytes of that head that no other has.
struct CacheEntry {
  // In its chain, with all that is compared first.
  CacheEntry* next;
  uint64_t hash;
  uint16_t host, target, tag, shown;
  Variant variant;
  Price price;
  bool isHead, strict, hasBody, used, isSealed;
  uint8_t conditionCount;
  uint32_t region;
  uint64_t serial;
  int64_t from, until;
  size_t offset, sizeBytes;
  // In the order in which answers came, or were spared.
  CacheEntry *older, *younger;
  // Made where HEAD is requested.
  HeadSeal* headSeal;
  int32_t* noted;
  uint64_t regionKey;
  int32_t notedMask;
  uint32_t kind, tally, bytes;
  int32_t resource[2];
  uint16_t before, after, stepCount, pattern;
  SealPlaces places;

  const char* text() const { return reinterpret_cast<const char*>(this + 1); }
  const char* targetText() const { return text() + host; }
  const char* tagText() const { return targetText() + target; }
  const char* shownText() const { return tagText() + tag; }
  Condition condition(size_t at) const {
    Condition found;
    memcpy(&found, shownText() + shown + at * sizeof(found), sizeof(found));
    return found;
  }
  const char* sealText() const { return shownText() + shown + conditionCount * sizeof(Condition); }
  const char* steps() const { return sealText() + (isSealed ? sizeof(Seal) : 0); }
  const char* own() const { return steps() + stepCount * sizeof(PackedStep); }
  size_t headLength() const { return size_t{before} + kIdLength + after; }
  bool isSigned() const { return until < kForever; }
};

// What is requested.
struct CacheKey {
  Variant variant;
  bool isHead;
  const char *host, *target;
  size_t hostLength, targetLength;
};

class ResponseCache {
 public:
  // `seed`: nobody outside may know it, or he could choose targets that all fall into one chain.
  ResponseCache(size_t maxBytes, uint64_t seed) : maxBytes_(maxBytes), seed_(seed), chains_(chainsFor(maxBytes)) {}
  ~ResponseCache() {
    while (oldest_ != nullptr) drop(oldest_);
  }
  ResponseCache(const ResponseCache&) = delete;
  ResponseCache& operator=(const ResponseCache&) = delete;

  std::vector<Tally> tallies;
  std::vector<Region> regions;
  std::unordered_map<uint64_t, size_t> keyed;
  // Held while anything of the answers changes, for other threads that copy them (shared-entries.h). This thread reads without it.
  std::mutex mutex;

  size_t bytes() const { return bytes_; }
  size_t count() const { return chains_.count(); }

  // The number of a region, whose serial number is set here.
  size_t open(Region made) {
    made.serial = ++serial_;
    size_t at = 0;
    while (at < regions.size() && regions[at].kept) at += 1;
    if (at == regions.size()) regions.push_back(made);
    else regions[at] = made;
    if (made.key != 0) keyed[made.key] = at;
    return at;
  }
  void close(size_t region) {
    regions[region].open = false;
    auto found = keyed.find(regions[region].key);
    if (found != keyed.end() && found->second == region) keyed.erase(found);
  }

  // Keeps an answer in place of the one that it had for the same key. Numbers are checked by the caller.
  void put(const NewEntry& from) {
    std::lock_guard<std::mutex> lock(mutex);
    CacheKey key{from.variant, from.isHead, from.text, from.text + from.host, from.host, from.target};
    if (CacheEntry* before = find(key)) drop(before);
    // What changes from one second to the next is kept beside the head, and so is no difference between two of them.
    const char* head = from.text + from.host + from.target + from.tag;
    head_.assign(head, from.before);
    head_.append(kIdLength, ' ');
    head_.append(head + from.before, from.after);
    char* lines = &head_[from.before + kIdLength];
    Seal seal;
    SealPlaces places = {};
    bool isSealed = from.until < kForever && findSeal(lines, from.after, &places) && take(places, lines, &seal);
    size_t keyBytes = from.host + from.target + from.tag;
    patterns_.pack(head_, {from.text + from.host, keyBytes - from.host}, &packed_);
    size_t steps = packed_.steps.size() * sizeof(PackedStep);
    size_t conditions = from.conditionCount * sizeof(Condition);
    size_t bytes = sizeof(CacheEntry) + keyBytes + from.shown + conditions + (isSealed ? sizeof(Seal) : 0) + steps + packed_.own.size();
    if (bytes > maxBytes_) return patterns_.drop(packed_.pattern);
    while (bytes_ + bytes > maxBytes_) evict(nullptr);
    CacheEntry* made = static_cast<CacheEntry*>(::operator new(bytes));
    *made = CacheEntry{};
    made->hash = hashOf(key);
    made->serial = regions[from.region].serial;
    made->regionKey = regions[from.region].key;
    made->kind = tallies[from.tally].kind;
    made->bytes = static_cast<uint32_t>(bytes);
    made->host = static_cast<uint16_t>(from.host);
    made->target = static_cast<uint16_t>(from.target);
    made->tag = static_cast<uint16_t>(from.tag);
    made->before = static_cast<uint16_t>(from.before);
    made->after = static_cast<uint16_t>(from.after);
    made->shown = static_cast<uint16_t>(from.shown);
    made->region = static_cast<uint32_t>(from.region);
    made->tally = static_cast<uint32_t>(from.tally);
    made->conditionCount = static_cast<uint8_t>(from.conditionCount);
    made->offset = from.offset;
    made->sizeBytes = from.sizeBytes;
    made->from = from.from;
    made->until = from.until;
    made->noted = from.noted;
    made->notedMask = from.notedMask;
    made->variant = from.variant;
    made->isHead = from.isHead;
    made->strict = from.strict;
    made->hasBody = from.hasBody;
    made->price = from.price;
    made->resource[0] = from.resource[0];
    made->resource[1] = from.resource[1];
    made->isSealed = isSealed;
    made->places = places;
    made->pattern = static_cast<uint16_t>(packed_.pattern);
    made->stepCount = static_cast<uint16_t>(packed_.steps.size());
    char* to = const_cast<char*>(made->text());
    auto add = [&to](const void* some, size_t length) {
      if (length > 0) memcpy(to, some, length);
      to += length;
    };
    add(from.text, keyBytes);
    add(head + from.before + from.after, from.shown);
    add(from.conditions, conditions);
    if (isSealed) add(&seal, sizeof(seal));
    add(packed_.steps.data(), steps);
    add(packed_.own.data(), packed_.own.size());
    insert(made);
  }

  // The answer to HEAD where there is none of its own: that to GET has the same lines but for the signature. Where tokens are taken, the
  // two have buckets of their own.
  CacheEntry* findFor(CacheKey key) {
    CacheEntry* found = find(key);
    if (found != nullptr || !key.isHead || key.variant == Variant::kPart) return found;
    key.isHead = false;
    found = find(key);
    return found != nullptr && found->price == Price::kTokens ? nullptr : found;
  }

  CacheEntry* find(const CacheKey& key) {
    uint64_t hash = hashOf(key);
    for (CacheEntry* each = chains_.of(hash); each != nullptr; each = each->next) {
      if (each->hash == hash && isFor(*each, key)) return each;
    }
    return nullptr;
  }

  // Whether everything that the answer rests on is as it was when it was made.
  bool holds(const CacheEntry& answer) const {
    const Region& region = regions[answer.region];
    if (!region.open || region.serial != answer.serial) return false;
    for (size_t at = 0; at < answer.conditionCount; at += 1) {
      Condition each = answer.condition(at);
      int32_t found = __atomic_load_n(each.cell, __ATOMIC_ACQUIRE);
      if (found < each.least || found > each.most) return false;
    }
    return true;
  }

  // Whether these bytes of its body can be read without waiting for the disk.
  bool isHere(const CacheEntry& answer, size_t start, size_t end) const {
    return regions[answer.region].isHere(answer.offset + start, answer.offset + end);
  }

  // Notes that it was requested: it is spared when room is needed here, and so is its record when its segment leaves.
  static void use(CacheEntry* answer) {
    answer->used = true;
    int32_t* noted = answer->noted;
    if (noted == nullptr || (__atomic_load_n(noted, __ATOMIC_RELAXED) & answer->notedMask) != 0) return;
    __atomic_fetch_or(noted, answer->notedMask, __ATOMIC_RELAXED);
  }

  void remove(CacheEntry* answer) {
    std::lock_guard<std::mutex> lock(mutex);
    drop(answer);
  }

  // Puts the head of an answer together, with room for the id of a request between its two parts, and without its signature. `to`: as
  // many bytes as it has.
  void unsignedHead(const CacheEntry& answer, char* to) const {
    patterns_.unpack(answer.pattern, answer.steps(), answer.stepCount, answer.own(), answer.targetText(), to);
  }
  void head(const CacheEntry& answer, char* to) const {
    unsignedHead(answer, to);
    if (!answer.isSealed) return;
    Seal seal;
    memcpy(&seal, answer.sealText(), sizeof(seal));
    server::put(seal, answer.places, to + answer.before + kIdLength);
  }

  // Keeps a signature for HEAD beside that for GET. False: there is no room. To be called with the mutex held.
  bool keepForHead(CacheEntry* answer, const HeadSeal& made) {
    if (answer->headSeal == nullptr) {
      while (bytes_ + sizeof(HeadSeal) > maxBytes_) {
        if (!evict(answer)) return false;
      }
      answer->headSeal = new HeadSeal;
      answer->bytes += sizeof(HeadSeal);
      bytes_ += sizeof(HeadSeal);
    }
    *answer->headSeal = made;
    return true;
  }

 private:
  size_t maxBytes_;
  uint64_t seed_, serial_ = 0;
  Chains<CacheEntry> chains_;
  CacheEntry *oldest_ = nullptr, *youngest_ = nullptr;
  size_t bytes_ = 0;
  HeadPatterns patterns_;
  // Of the answer that is put.
  std::string head_;
  Packed packed_;

  void drop(CacheEntry* answer) {
    chains_.remove(answer);
    leave(answer);
    bytes_ -= answer->bytes;
    patterns_.drop(answer->pattern);
    delete answer->headSeal;
    ::operator delete(answer);
  }

  void insert(CacheEntry* made) {
    chains_.insert(made);
    enter(made);
    bytes_ += made->bytes;
  }

  // As the youngest.
  void enter(CacheEntry* answer) {
    answer->older = youngest_;
    answer->younger = nullptr;
    (youngest_ == nullptr ? oldest_ : youngest_->younger) = answer;
    youngest_ = answer;
  }

  void leave(CacheEntry* answer) {
    (answer->older == nullptr ? oldest_ : answer->older->younger) = answer->younger;
    (answer->younger == nullptr ? youngest_ : answer->younger->older) = answer->older;
  }

  // The oldest goes, but one that was requested since it came, or was spared, is spared once more and becomes the youngest. Of so many in a
  // row the next goes all the same: where all were requested, to look at each took an edge thread 20 ms. `kept` stays. False: there is
  // no other.
  bool evict(const CacheEntry* kept) {
    if (oldest_ == nullptr || (oldest_ == kept && youngest_ == kept)) return false;
    for (size_t spared = 0; oldest_ == kept || (oldest_->used && spared < kSparedMax); spared += 1) {
      CacheEntry* answer = oldest_;
      answer->used = false;
      leave(answer);
      enter(answer);
    }
    drop(oldest_);
    return true;
  }

  // One for each answer of usual size, up to 128 MiB of them.
  static size_t chainsFor(size_t maxBytes) {
    size_t most = Chains<CacheEntry>::kFewest;
    while (most < maxBytes / kUsualEntry && most < kChainsMax) most *= 2;
    return most;
  }

  static bool isFor(const CacheEntry& answer, const CacheKey& key) {
    return answer.variant == key.variant && answer.isHead == key.isHead && answer.host == key.hostLength &&
           answer.target == key.targetLength && memcmp(answer.text(), key.host, key.hostLength) == 0 &&
           memcmp(answer.targetText(), key.target, key.targetLength) == 0;
  }

  static uint64_t mix(uint64_t one, uint64_t other) {
    __extension__ typedef unsigned __int128 Wide;
    Wide product = static_cast<Wide>(one) * other;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  uint64_t hashed(const char* text, size_t length, uint64_t hash) const {
    for (; length >= 8; text += 8, length -= 8) {
      uint64_t word;
      memcpy(&word, text, 8);
      hash = mix(hash ^ word, seed_ | 1);
    }
    uint64_t word = length;
    memcpy(reinterpret_cast<char*>(&word) + 1, text, length < 7 ? length : 7);
    return mix(hash ^ word, 0x9e3779b97f4a7c15u);
  }

  uint64_t hashOf(const CacheKey& key) const {
    uint64_t kind = static_cast<uint64_t>(key.variant) * 2 + (key.isHead ? 1 : 0);
    return hashed(key.target, key.targetLength, hashed(key.host, key.hostLength, seed_ ^ kind));
  }
};

}  // namespace server
