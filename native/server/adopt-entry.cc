// Takes over what another thread has answered.
#include <functional>

#include "cache-state.h"

namespace server {

bool CacheState::knows(const int32_t* cell) const {
  std::less<const int32_t*> before;
  for (const Cells& each : cells) {
    if (!before(cell, each.start) && before(cell, each.start + each.length)) return true;
  }
  return false;
}

CacheEntry* CacheState::adopt(const CacheKey& key) {
  Borrowed found;
  if (!Tables::all().borrow(group, &cache, key, &found)) return nullptr;
  NewEntry& answer = found.answer;
  auto region = cache.keyed.find(found.regionKey);
  if (region == cache.keyed.end()) return nullptr;
  answer.region = region->second;
  size_t length = cache.regions[answer.region].length;
  if (answer.hasBody && (answer.sizeBytes > length || answer.offset > length - answer.sizeBytes)) return nullptr;
  while (answer.tally < cache.tallies.size() && cache.tallies[answer.tally].kind != found.kind) answer.tally += 1;
  if (answer.tally == cache.tallies.size()) return nullptr;
  if (answer.price != Price::kNone && limits == nullptr) return nullptr;
  // The other thread may end, and with it what it holds: this one looks at memory only that it was given itself.
  if (answer.noted != nullptr && !knows(answer.noted)) return nullptr;
  for (size_t at = 0; at < answer.conditionCount; at += 1) {
    if (!knows(answer.conditions[at].cell)) return nullptr;
  }
  cache.put(answer);
  return cache.findFor(key);
}

}  // namespace server
