// The requests, and what must be answered. A plan is a file of lines, fields separated by tabs:
//
//   truth   PATH                          a file; bodies are windows of it, which continue at its start behind its end
//   client  LINE LINE ...                 header lines of one kind of client; each request is one of them, at random
//   target  METHOD PATH STATUS SIZE START RANGE LINE ...
//
// SIZE: bytes of the whole content, - where any length is right. START: where its bytes begin in the truth, - where they are not
// known. RANGE: 0, or the length of the range to ask for, anywhere in the content. STATUS: * where any is right.
#pragma once
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

struct Target {
  std::string method, path, lines;
  int status = 200;     // 0: any
  int64_t size = -1;    // -1: any
  int64_t start = -1;   // -1: not known
  uint64_t range = 0;
};

// The same numbers for the same seed (splitmix64).
struct Chance {
  uint64_t state;
  uint64_t word() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t count) { return static_cast<uint64_t>((static_cast<unsigned __int128>(word()) * count) >> 64); }
  double unit() { return static_cast<double>(word() >> 11) * 0x1p-53; }
};

// Draws from given weights in constant time (the alias method).
class Weighted {
 public:
  Weighted() = default;
  // Weight of rank r (from 1): 1 / r^exponent.
  Weighted(size_t count, double exponent) : share_(count), other_(count) {
    std::vector<double> scaled(count);
    double sum = 0;
    for (size_t at = 0; at < count; at += 1) sum += scaled[at] = std::pow(static_cast<double>(at + 1), -exponent);
    std::vector<size_t> small, large;
    for (size_t at = 0; at < count; at += 1) {
      scaled[at] *= static_cast<double>(count) / sum;
      (scaled[at] < 1 ? small : large).push_back(at);
    }
    while (!small.empty() && !large.empty()) {
      size_t low = small.back(), high = large.back();
      small.pop_back();
      share_[low] = scaled[low];
      other_[low] = static_cast<uint32_t>(high);
      scaled[high] -= 1 - scaled[low];
      if (scaled[high] < 1) {
        large.pop_back();
        small.push_back(high);
      }
    }
    for (size_t at : small) share_[at] = 1;
    for (size_t at : large) share_[at] = 1;
  }
  size_t draw(Chance& chance) const {
    size_t at = chance.below(share_.size());
    return chance.unit() < share_[at] ? at : other_[at];
  }

 private:
  std::vector<double> share_;
  std::vector<uint32_t> other_;
};

struct Plan {
  std::vector<std::string> clients;
  std::vector<Target> targets;
  const uint8_t* truth = nullptr;
  uint64_t truthSize = 0;

  // True where these bytes of a body are the true ones. `at`: from the start of the content.
  bool isTrue(const Target& target, uint64_t at, const uint8_t* bytes, size_t count) const {
    for (uint64_t from = static_cast<uint64_t>(target.start) + at; count > 0;) {
      uint64_t place = from % truthSize;
      size_t some = static_cast<size_t>(std::min<uint64_t>(count, truthSize - place));
      if (memcmp(truth + place, bytes, some) != 0) return false;
      bytes += some;
      count -= some;
      from += some;
    }
    return true;
  }
};

inline std::vector<std::string> fieldsOf(const std::string& line) {
  std::vector<std::string> fields;
  for (size_t from = 0; from <= line.size();) {
    size_t to = std::min(line.find('\t', from), line.size());
    fields.push_back(line.substr(from, to - from));
    from = to + 1;
  }
  return fields;
}

inline std::string linesFrom(const std::vector<std::string>& fields, size_t first) {
  std::string lines;
  for (size_t at = first; at < fields.size(); at += 1) lines += fields[at] + "\r\n";
  return lines;
}

inline void openTruth(Plan& plan, const std::string& path) {
  int file = open(path.c_str(), O_RDONLY);
  struct stat found {};
  if (file < 0 || fstat(file, &found) != 0 || found.st_size == 0) throw std::runtime_error("cannot read " + path);
  void* bytes = mmap(nullptr, static_cast<size_t>(found.st_size), PROT_READ, MAP_SHARED, file, 0);
  if (bytes == MAP_FAILED) throw std::runtime_error("cannot map " + path);
  close(file);
  plan.truth = static_cast<const uint8_t*>(bytes);
  plan.truthSize = static_cast<uint64_t>(found.st_size);
}

inline Plan readPlan(const std::string& path) {
  Plan plan;
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    auto fields = fieldsOf(line);
    auto number = [&](size_t at) { return fields[at] == "-" || fields[at] == "*" ? -1 : atoll(fields[at].c_str()); };
    if (fields[0] == "truth" && fields.size() == 2) openTruth(plan, fields[1]);
    else if (fields[0] == "client") plan.clients.push_back(linesFrom(fields, 1));
    else if (fields[0] == "target" && fields.size() >= 7) {
      Target target;
      target.method = fields[1];
      target.path = fields[2];
      target.status = static_cast<int>(std::max<int64_t>(number(3), 0));
      target.size = number(4);
      target.start = number(5);
      target.range = static_cast<uint64_t>(number(6));
      target.lines = linesFrom(fields, 7);
      if (target.lines.find("Host: ") == std::string::npos) target.lines = "Host: 127.0.0.1\r\n" + target.lines;
      if (target.start >= 0 && plan.truth == nullptr) throw std::runtime_error("a target before its truth");
      if (target.range > 0 && target.size < static_cast<int64_t>(target.range)) throw std::runtime_error("a range beyond its target");
      plan.targets.push_back(std::move(target));
    } else throw std::runtime_error("no line of a plan: " + line);
  }
  if (plan.targets.empty()) throw std::runtime_error("a plan without targets");
  if (plan.clients.empty()) plan.clients.push_back("User-Agent: load\r\n");
  return plan;
}
