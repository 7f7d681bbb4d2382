// Header lines that change no cached answer. Every other line makes a request one for JavaScript.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace server {

class PlainLines {
 public:
  // One line each: `name`, or `name=value|value`. With another value than one of those a request is loose: answers that look
  // at such lines (`strict`) are not sent to it from the cache.
  explicit PlainLines(const std::string& text) {
    size_t count = 1;
    for (char each : text) count += each == '\n' ? 1 : 0;
    size_t size = 16;
    while (size < count * 4) size *= 2;
    slots_.resize(size);
    for (size_t at = 0; at < text.size();) {
      size_t end = text.find('\n', at);
      if (end == std::string::npos) end = text.size();
      add(text.substr(at, end - at));
      at = end + 1;
    }
  }

  enum Verdict { kUnknown, kPlain, kLoose };

  // `hash`: of the name, as the parser has it.
  Verdict judge(uint32_t hash, const char* name, size_t length, const char* value, size_t valueLength) const {
    for (size_t at = hash;; at += 1) {
      const Slot& slot = slots_[at & (slots_.size() - 1)];
      if (slot.name.empty()) return kUnknown;
      if (slot.hash != hash || slot.name.size() != length || memcmp(slot.name.data(), name, length) != 0) continue;
      return slot.values.empty() || has(slot.values, value, valueLength) ? kPlain : kLoose;
    }
  }

 private:
  struct Slot {
    uint32_t hash = 0;
    std::string name;
    std::vector<std::string> values;
  };
  std::vector<Slot> slots_;

  static bool has(const std::vector<std::string>& values, const char* value, size_t length) {
    for (const std::string& each : values) {
      if (each.size() == length && memcmp(each.data(), value, length) == 0) return true;
    }
    return false;
  }

  void add(const std::string& line) {
    Slot made;
    size_t equals = line.find('=');
    made.name = line.substr(0, equals);
    if (made.name.empty()) return;
    for (char each : made.name) made.hash = made.hash * 31 + static_cast<uint8_t>(each);
    for (size_t at = equals; at < line.size();) {
      size_t end = line.find('|', at + 1);
      made.values.push_back(line.substr(at + 1, end == std::string::npos ? end : end - at - 1));
      at = end;
    }
    size_t place = made.hash;
    while (!slots_[place & (slots_.size() - 1)].name.empty()) place += 1;
    slots_[place & (slots_.size() - 1)] = made;
  }
};

}  // namespace server
