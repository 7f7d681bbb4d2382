// Takes over what another thread has answered.
#include <functional>

#include "repeat.h"

namespace server {

bool Repeats::knows(const int32_t* cell) const {
  std::less<const int32_t*> before;
  for (const Cells& each : cells) {
    if (!before(cell, each.start) && before(cell, each.start + each.length)) return true;
  }
  return false;
}

Answer* Repeats::adopt(const Question& question) {
  Borrowed found;
  if (!Tables::all().borrow(group, &ready, question, &found)) return nullptr;
  Proposed& answer = found.answer;
  auto region = ready.keyed.find(found.regionKey);
  if (region == ready.keyed.end()) return nullptr;
  answer.region = region->second;
  size_t length = ready.regions[answer.region].length;
  if (answer.hasBody && (answer.sizeBytes > length || answer.offset > length - answer.sizeBytes)) return nullptr;
  while (answer.tally < ready.tallies.size() && ready.tallies[answer.tally].kind != found.kind) answer.tally += 1;
  if (answer.tally == ready.tallies.size()) return nullptr;
  if (answer.price != Price::kNone && limits == nullptr) return nullptr;
  // The other thread may end, and with it what it holds: this one looks at memory only that it was given itself.
  if (answer.noted != nullptr && !knows(answer.noted)) return nullptr;
  for (size_t at = 0; at < answer.conditionCount; at += 1) {
    if (!knows(answer.conditions[at].cell)) return nullptr;
  }
  ready.put(answer);
  return ready.findFor(question);
}

}  // namespace server
