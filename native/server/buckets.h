// Takes tokens for cached answers out of the buckets that all threads share: the same memory, the same locks and the same numbers as
// src/admission/bucket-table.ts. Only what is plain is decided here: JavaScript decides where regular tokens do not suffice, or a bucket has no
// place in the table yet. test/admission/native-buckets.test.ts compares both.
#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lock-holder.h"

namespace server {

// Where a bucket lies, as `Key` in src/admission/bucket-key.ts.
struct BucketKey {
  int32_t words[4];
  uint32_t hash;
};

// One token for each KiB begun, one at least.
inline uint64_t tokensOf(uint64_t bytes) { return bytes <= 1024 ? 1 : (bytes + 1023) / 1024; }

// What became of a take of regular tokens. Nothing was taken: because there are fewer, and no paid ones either; or JavaScript decides,
// because the bucket has no place yet, or has paid tokens.
enum class Drawn { kAll, kShort, kUndecided };

// One kind of buckets. The memory is made and described by src/admission/bucket-table.ts.
class Buckets {
 public:
  static constexpr size_t kBlocksMax = size_t{1} << 26;
  static size_t wordsFor(size_t blocks) { return kHeaderWords + 2 * blocks + blocks * kBlockSlots * kSlotNumbers * 2; }

  // `blocks`: a power of two. `holder`: of the thread that uses this object.
  Buckets(int32_t* memory, size_t blocks, int32_t holder)
      : header_(reinterpret_cast<double*>(memory)),
        locks_(memory + kHeaderWords),
        marks_(locks_ + blocks),
        slots_(reinterpret_cast<double*>(marks_ + blocks)),
        mask_(static_cast<uint32_t>(blocks - 1)),
        holder_(holder) {}

  // Takes exactly so many regular tokens. `hadLittleUsed`: it had at least half of them before (`hasUsedLittle` in buckets.ts).
  Drawn take(const BucketKey& key, uint64_t tokens, bool* hadLittleUsed = nullptr) {
    uint32_t block = lock(key.hash);
    double* slot = find(block, key);
    Drawn took = slot == nullptr ? Drawn::kUndecided : takeAt(slot, static_cast<double>(tokens), hadLittleUsed);
    if (took == Drawn::kAll) mark(block);
    unlock(block);
    return took;
  }

  // Gives regular tokens back. A bucket that was given up meanwhile counts as full.
  void give(const BucketKey& key, uint64_t tokens) {
    uint32_t block = lock(key.hash);
    double* slot = find(block, key);
    if (slot != nullptr) {
      slot[kSpent] = std::max(slot[kSpent] - static_cast<double>(tokens) * kGrains, refilled());
      mark(block);
    }
    unlock(block);
  }

 private:
  // As in bucket-table.ts: words of the header, and numbers in it: grains refilled until now, and those of a full bucket; slots of a block;
  // a slot's numbers: its key takes two.
  static constexpr size_t kHeaderWords = 16, kRefilled = 2, kFull = 3, kBlockSlots = 32, kSlotNumbers = 4, kSpent = 2, kState = 3;
  // A token in the table's unit; the state of a slot with no paid tokens left that has a row on the disk.
  static constexpr double kGrains = 10, kPinned = 2;
  // As in locks.ts: tries before a waiter sleeps, how long it sleeps, and after how many tries it looks whether the holder has ended.
  static constexpr int kSpinsMax = 300, kTriesMax = 250;
  static constexpr long kStepNs = 100'000;

  double* header_;
  int32_t* locks_;
  int32_t* marks_;
  double* slots_;
  uint32_t mask_;
  int32_t holder_;

  // The keeper of buckets may write it meanwhile: the old or the new one is read.
  double number(size_t at) const {
    double found;
    __atomic_load(header_ + at, &found, __ATOMIC_RELAXED);
    return found;
  }

  double refilled() const { return number(kRefilled); }

  void mark(uint32_t block) { __atomic_store_n(marks_ + block, 1, __ATOMIC_RELAXED); }

  Drawn takeAt(double* slot, double tokens, bool* hadLittleUsed) {
    double now = refilled(), full = number(kFull);
    double lacking = std::min(std::max(slot[kSpent] - now, 0.0), full);
    double regular = std::floor((full - lacking) / kGrains);
    if (hadLittleUsed != nullptr) *hadLittleUsed = regular >= std::ceil(full / kGrains / 2);
    if (regular < tokens) return slot[kState] > kPinned ? Drawn::kUndecided : Drawn::kShort;
    slot[kSpent] = now + lacking + tokens * kGrains;
    return Drawn::kAll;
  }

  // The slot of a key in a locked block.
  double* find(uint32_t block, const BucketKey& key) {
    double* first = slots_ + static_cast<size_t>(block) * kBlockSlots * kSlotNumbers;
    uint32_t start = key.hash >> 27;
    for (uint32_t step = 0; step < kBlockSlots; step += 1) {
      double* slot = first + ((start + step) & (kBlockSlots - 1)) * kSlotNumbers;
      if (memcmp(slot, key.words, sizeof(key.words)) == 0 && slot[kState] != 0) return slot;
    }
    return nullptr;
  }

  bool tryLock(int32_t* cell, int32_t from) {
    return __atomic_compare_exchange_n(cell, &from, holder_, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }

  uint32_t lock(uint32_t hash) {
    uint32_t block = hash & mask_;
    int32_t* cell = locks_ + block;
    for (int spins = 0; spins < kSpinsMax; spins += 1) {
      if (tryLock(cell, 0)) return block;
    }
    // A holder that does not run waits for a processor, or was stopped, and may write as soon as it runs again. Only one that has ended
    // never lets go: its lock is taken over.
    for (int tries = 1;; tries += 1) {
      int32_t before = __atomic_load_n(cell, __ATOMIC_SEQ_CST);
      bool isFree = before == 0 || (tries % kTriesMax == 0 && !isAlive(before));
      if (isFree && tryLock(cell, before)) return block;
      timespec step = {0, kStepNs};
      nanosleep(&step, nullptr);
    }
  }

  void unlock(uint32_t block) { __atomic_store_n(locks_ + block, 0, __ATOMIC_SEQ_CST); }
};

}  // namespace server
