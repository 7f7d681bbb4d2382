// Puts entries into chains and takes them out again, in any order and while the chains are split, and looks for each of them. Arguments:
// rounds, seed.
#include <memory>
#include <vector>

#include "../../native/server/chains.h"
#include "mutate.h"

using namespace server;

struct Entry {
  Entry* next;
  uint64_t hash;
};

static bool isThere(const Chains<Entry>& chains, const Entry& entry) {
  size_t found = 0;
  for (Entry* each = chains.of(entry.hash); each != nullptr; each = each->next) found += each == &entry ? 1 : 0;
  require(found <= 1, "an entry that is twice in its chain", std::to_string(entry.hash));
  return found == 1;
}

static void run(int rounds, size_t most) {
  Chains<Entry> chains(most);
  std::vector<std::unique_ptr<Entry>> all;
  // More come than go, then more go than come, and so on.
  for (int round = 0; round < rounds; round += 1) {
    bool comes = below(10) < (round / 20000 % 3 < 2 ? 9u : 1u);
    if (comes || all.empty()) {
      // Some hashes are alike in their last bits, or in all.
      uint64_t hash = below(100) == 0 ? state << below(30) : state;
      if (!all.empty() && below(100) == 0) hash = all.back()->hash;
      all.emplace_back(new Entry{nullptr, hash});
      chains.insert(all.back().get());
    } else {
      std::swap(all[below(static_cast<uint32_t>(all.size()))], all.back());
      chains.remove(all.back().get());
      require(!isThere(chains, *all.back()), "an entry that was taken out", std::to_string(all.back()->hash));
      all.pop_back();
    }
    require(chains.count() == all.size(), "another count", std::to_string(chains.count()));
    if (!all.empty()) require(isThere(chains, *all[below(static_cast<uint32_t>(all.size()))]), "an entry that is not found", "");
  }
  for (const std::unique_ptr<Entry>& each : all) require(isThere(chains, *each), "an entry that is not found at the end", "");
  while (!all.empty()) {
    chains.remove(all.back().get());
    all.pop_back();
  }
}

int main(int count, char** words) {
  int rounds = count > 1 ? atoi(words[1]) : 100000;
  state = (count > 2 ? strtoull(words[2], nullptr, 10) : 1) | 1;
  run(rounds, size_t{1} << 20);
  run(rounds, Chains<Entry>::kFewest * 4);
  return 0;
}
