// What one load found out: how many answers came, how late, and which were not what had to come.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

enum class Wrong { status, length, range, body, framing, closed, late, unanswered, handshake, count };

inline const char* nameOf(Wrong kind) {
  static const char* const names[] = {"status", "length", "range", "body", "framing", "closed", "late", "unanswered", "handshake"};
  return names[static_cast<size_t>(kind)];
}

struct Outcome {
  double seconds = 0;       // from the first request to the last answer
  uint64_t sent = 0;        // requests
  uint64_t answered = 0;    // whole answers, right or wrong
  uint64_t bytes = 0;       // of bodies
  uint64_t checked = 0;     // bodies compared byte by byte
  uint64_t connects = 0;
  uint64_t wrong[static_cast<size_t>(Wrong::count)] = {};
  std::map<int, uint64_t> statuses;
  std::vector<uint32_t> microseconds;
  std::vector<std::string> examples;  // of wrong answers: the first few

  void mistake(Wrong kind, const std::string& text, uint64_t times = 1) {
    wrong[static_cast<size_t>(kind)] += times;
    if (examples.size() < 5) examples.push_back(text);
  }

  // The given share of the answers came within so many microseconds.
  uint32_t quantile(double share) {
    if (microseconds.empty()) return 0;
    size_t at = std::min(microseconds.size() - 1, static_cast<size_t>(share * static_cast<double>(microseconds.size())));
    std::nth_element(microseconds.begin(), microseconds.begin() + static_cast<long>(at), microseconds.end());
    return microseconds[at];
  }

  void print() {
    printf("{\"seconds\":%.6f,\"sent\":%lu,\"answered\":%lu,\"bytes\":%lu,\"checked\":%lu,\"connects\":%lu,", seconds, sent,
           answered, bytes, checked, connects);
    printf("\"p50Us\":%u,\"p99Us\":%u,\"p999Us\":%u,\"maxUs\":%u,", quantile(0.5), quantile(0.99), quantile(0.999), quantile(1));
    printf("\"statuses\":{");
    const char* comma = "";
    for (const auto& [status, times] : statuses) {
      printf("%s\"%d\":%lu", comma, status, times);
      comma = ",";
    }
    printf("},\"wrong\":{");
    for (size_t kind = 0; kind < static_cast<size_t>(Wrong::count); kind += 1)
      printf("%s\"%s\":%lu", kind == 0 ? "" : ",", nameOf(static_cast<Wrong>(kind)), wrong[kind]);
    printf("},\"examples\":[");
    comma = "";
    for (const auto& example : examples) {
      printf("%s\"%s\"", comma, escaped(example).c_str());
      comma = ",";
    }
    printf("]}\n");
  }

  static std::string escaped(const std::string& text) {
    std::string safe;
    for (char c : text) {
      if (c == '"' || c == '\\') safe += '\\';
      safe += c < ' ' || c > '~' ? '?' : c;
    }
    return safe;
  }
};
