// Whose connections make room for others where there are too many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server.h"

namespace server {

// The first bits that count as one of IPv4 and of IPv6; and what part of all places may be its own.
struct Grouping {
  uint32_t four, six;
  size_t parts;

  uint64_t of(const Ip& ip) const {
    if (ip.isFour()) return static_cast<uint32_t>(ip.words[3]) >> (32 - four);
    uint64_t high = static_cast<uint64_t>(static_cast<uint32_t>(ip.words[0])) << 32 | static_cast<uint32_t>(ip.words[1]);
    return high >> (64 - six);
  }
};

// One client; a network that one party usually has as a whole; what a provider has. One person may have thousands of the first, and
// hundreds of the second.
constexpr Grouping kGroupings[] = {{32, 64, 8}, {24, 48, 8}, {16, 32, 32}};

// Those who hold more of `from` than their part of `places`, by the first grouping in which somebody does.
struct Hog {
  std::vector<Connection*> has;
  // How many there are beyond their part. 0: nobody has more than that.
  size_t beyond = 0;
};

inline Hog hogOf(const std::vector<Connection*>& from, size_t places) {
  for (const Grouping& grouping : kGroupings) {
    std::unordered_map<uint64_t, size_t> counts;
    uint64_t most = 0;
    for (const Connection* c : from) {
      uint64_t group = grouping.of(c->ip);
      if (++counts[group] > counts[most]) most = group;
    }
    size_t part = std::max<size_t>(1, places / grouping.parts);
    if (counts[most] <= part) continue;
    Hog hog;
    hog.beyond = counts[most] - part;
    for (Connection* c : from) {
      if (grouping.of(c->ip) == most) hog.has.push_back(c);
    }
    return hog;
  }
  return {};
}

// Who waits for so long at least has shown that it takes its time. The clock of a server moves once a second.
constexpr double kFreshMs = 1500;

// So many of all places go last: those that were accepted last. Who drips a body is fresh for as long as it likes, and of those who
// are fresh a newcomer went first, before its request was read. Not more of them, else a flood of newcomers would end uploads.
constexpr uint64_t kNewestParts = 8;

// When a connection that waits for its client makes room: by rank, then who has waited for longest. Those that were ended already go
// first; then those that have never had an answer, idle ones, and those that send a body. What is fresh goes last, whatever it is, so
// that a newcomer has time for its request.
struct Turn {
  int rank;
  double since;
  uint64_t number;

  bool operator<(const Turn& other) const {
    return std::tie(rank, since, number) < std::tie(other.rank, other.since, other.number);
  }
};

inline Turn turnOf(const Connection* c, double now, uint64_t newest) {
  bool isBody = c->phase == Phase::kAnswering;
  double since = isBody ? c->heard : c->phase == Phase::kLingering ? c->lingers : c->since;
  int rank = c->phase == Phase::kLingering ? 0 : isBody ? 3 : c->first ? 1 : 2;
  if (now - since < kFreshMs) rank += c->number > newest ? 8 : 4;
  return {rank, since, c->number};
}

// Of these, the `wanted` that make room first, in order. `newest`: of connections with greater numbers.
inline std::vector<Connection*> firstOf(std::vector<Connection*> from, size_t wanted, double now, uint64_t newest) {
  std::vector<std::pair<Turn, Connection*>> turns;
  for (Connection* c : from) {
    if (c->waits()) turns.emplace_back(turnOf(c, now, newest), c);
  }
  size_t count = std::min(wanted, turns.size());
  auto sooner = [](const auto& one, const auto& other) { return one.first < other.first; };
  std::partial_sort(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(count), turns.end(), sooner);
  from.clear();
  for (size_t at = 0; at < count; at += 1) from.push_back(turns[at].second);
  return from;
}

}  // namespace server
