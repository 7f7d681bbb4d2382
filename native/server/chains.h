// Chains of entries by their hashes, one more for each entry that comes. To deal all entries into twice as many chains at once stopped an
// edge thread for 3 ms at 131,072 entries and for 29 ms at 1,048,576. Linear hashing (Litwin, 1980) splits one chain at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace server {

// `Entry` has its `hash` and the `next` one of its chain.
template <typename Entry>
class Chains {
 public:
  // `most`: a power of two, and kFewest or more. Memory for all of them is reserved at once, so that it never moves; the system gives a
  // page of it when that is first written, and they are written one behind the other.
  explicit Chains(size_t most) : most_(most), first_(static_cast<Entry**>(calloc(most, sizeof(Entry*)))) {
    if (first_ == nullptr) throw std::bad_alloc();
  }

  static constexpr size_t kFewest = 1024;

  Entry* of(uint64_t hash) const { return first_.get()[placeOf(hash)]; }

  void insert(Entry* entry) {
    count_ += 1;
    if (count_ > level_ + split_ && level_ < most_) split();
    push(placeOf(entry->hash), entry);
  }

  // The entry is in its chain.
  void remove(Entry* entry) {
    count_ -= 1;
    Entry** link = first_.get() + placeOf(entry->hash);
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
  }

  size_t count() const { return count_; }

 private:
  struct Free {
    void operator()(Entry** memory) const { free(memory); }
  };

  // There are level_ chains, a power of two, and split_ more: the first split_ of them have been split, by the next bit of the hash.
  size_t most_, level_ = kFewest, split_ = 0, count_ = 0;
  std::unique_ptr<Entry*, Free> first_;

  size_t placeOf(uint64_t hash) const {
    size_t place = hash & (level_ - 1);
    return place < split_ ? hash & (level_ * 2 - 1) : place;
  }

  void push(size_t place, Entry* entry) {
    Entry** chain = first_.get() + place;
    entry->next = *chain;
    *chain = entry;
  }

  void split() {
    Entry* each = first_.get()[split_];
    first_.get()[split_] = nullptr;
    split_ += 1;
    while (each != nullptr) {
      Entry* next = each->next;
      push(placeOf(each->hash), each);
      each = next;
    }
    if (split_ < level_) return;
    level_ *= 2;
    split_ = 0;
  }
};

}  // namespace server
