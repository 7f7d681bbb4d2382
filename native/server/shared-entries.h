// The tables of all threads of a program: what one of them has answered, the others need not decide again. Answers are copied, since each
// thread has mappings and meters of its own; what an answer rests on are numbers in memory that all threads share.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "response-cache.h"

namespace server {

// A copy of an answer of another thread.
struct Borrowed {
  NewEntry answer;
  std::string text;
  uint64_t regionKey;
  uint32_t kind;
};

class Tables {
 public:
  static Tables& all() {
    static Tables made;
    return made;
  }

  // `group`: what the threads of one program have in common, and nobody else.
  void join(const void* group, ResponseCache* table) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    members_.push_back({group, table});
  }
  // Nobody reads it any more.
  void leave(const ResponseCache* table) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    for (size_t at = 0; at < members_.size(); at += 1) {
      if (members_[at].table == table) return static_cast<void>(members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at)));
    }
  }

  // The answer of another table of the group. With many threads not all of them are tried: beginning behind one's own, so that each is
  // tried by some.
  bool borrow(const void* group, const ResponseCache* own, const CacheKey& key, Borrowed* to) {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    size_t self = 0;
    while (self < members_.size() && members_[self].table != own) self += 1;
    size_t tried = 0;
    for (size_t step = 1; step < members_.size() && tried < kTriedMax; step += 1) {
      const Member& member = members_[(self + step) % members_.size()];
      if (member.group != group || member.table == own) continue;
      tried += 1;
      if (copy(member.table, key, to)) return true;
    }
    return false;
  }

 private:
  struct Member {
    const void* group;
    ResponseCache* table;
  };
  static constexpr size_t kTriedMax = 8;

  std::shared_mutex mutex_;
  std::vector<Member> members_;

  static bool copy(ResponseCache* table, const CacheKey& key, Borrowed* to) {
    std::lock_guard<std::mutex> lock(table->mutex);
    const CacheEntry* found = table->findFor(key);
    if (found == nullptr || found->regionKey == 0 || found->kind == 0) return false;
    size_t before = size_t{found->host} + found->target + found->tag, head = found->headLength();
    to->text.assign(found->text(), before);
    to->text.resize(before + head);
    table->head(*found, &to->text[before]);
    to->text.erase(before + found->before, kIdLength);
    to->text.append(found->shownText(), found->shown);
    to->regionKey = found->regionKey;
    to->kind = found->kind;
    NewEntry& answer = to->answer;
    answer = NewEntry{};
    answer.variant = found->variant;
    answer.isHead = found->isHead;
    answer.strict = found->strict;
    answer.text = to->text.data();
    answer.host = found->host;
    answer.target = found->target;
    answer.tag = found->tag;
    answer.before = found->before;
    answer.after = found->after;
    answer.shown = found->shown;
    answer.offset = found->offset;
    answer.sizeBytes = found->sizeBytes;
    answer.hasBody = found->hasBody;
    answer.from = found->from;
    answer.until = found->until;
    answer.noted = found->noted;
    answer.notedMask = found->notedMask;
    answer.price = found->price;
    answer.resource[0] = found->resource[0];
    answer.resource[1] = found->resource[1];
    answer.conditionCount = found->conditionCount;
    for (size_t at = 0; at < found->conditionCount; at += 1) answer.conditions[at] = found->condition(at);
    return true;
  }
};

}  // namespace server
