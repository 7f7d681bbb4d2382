// Answers that JavaScript gave and lets be given again: to requests that are the same byte for byte (but for the bounds of one
// range), for as long as JavaScript says. This side only recognizes such requests and sends; whether an answer still holds, and
// whether the client may have it, is asked each time.
#pragma once

#include <sys/random.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "parser.h"

namespace server {

// Heads longer than this are no ordinary ones.
constexpr size_t kKeyMax = 2048;
// Answers at once: with their heads some 4 MiB. Those that are forgotten and still being taken, one a connection, come on top.
constexpr size_t kStandingMax = 1024;

// A request as far as it is compared: everything but the bounds of its range.
struct Key {
  Span front{nullptr, 0}, back{nullptr, 0};
  uint64_t hash = 0;
  bool ranged = false;
  uint64_t from = 0, to = 0;  // inclusive
};

struct Standing {
  uint64_t hash;
  size_t split;  // bytes of `key` before the range's bounds
  std::string key;
  std::string before, after, rest;  // around the request's id; a range and its length are named before the rest
  const uint8_t* body;              // the whole body, or the part of the content that ranges may lie in
  size_t length;
  int file;                         // the file that is the content, or less than 0
  bool ranged;
  uint64_t start;     // place of `body` in the content
  uint64_t size;      // of the content
  size_t users = 0;   // connections that still take it
  bool retired = false;
};

class StandingAnswers {
 public:
  // Larger parts are sent piece by piece, as JavaScript says.
  static constexpr uint64_t kPartMax = 1024 * 1024;
  static constexpr size_t kIdLength = 22;

  StandingAnswers() { clear(); }

  // False where this request is of no kind that is ever answered so. `out`: what the reader said of the head in `bytes`.
  static bool readKey(const uint8_t* bytes, const int32_t* out, Key* key) {
    if ((out[kFlags] & (kHttp10 | kKeep | kBody | kExpects)) != kKeep) return false;
    Span method{bytes + out[kMethodStart], static_cast<size_t>(out[kMethodEnd] - out[kMethodStart])};
    if (!method.is("GET") && !method.is("HEAD")) return false;
    const uint8_t* start = bytes + out[kMethodStart];
    size_t length = static_cast<size_t>(out[kTextEnd] - out[kMethodStart]);
    if (length > kKeyMax) return false;
    key->front = {start, length};
    key->back = {start + length, 0};
    for (int at = 0; at < out[kCount]; at += 1) {
      const int32_t* line = out + kLines + kLineFields * at;
      Span name{bytes + line[1], static_cast<size_t>(line[2] - line[1])};
      if (!name.is("range")) continue;
      if (key->ranged || !readRange(bytes + line[3], static_cast<size_t>(line[4] - line[3]), key)) return false;
      key->ranged = true;
      key->front.length = static_cast<size_t>(bytes + line[3] - start);
      key->back = {bytes + line[4], length - static_cast<size_t>(bytes + line[4] - start)};
    }
    key->hash = mix(key->back, mix(key->front, key->ranged ? 1 : 0));
    return true;
  }

  // The answer's number, or less than 0. A range must lie within what the answer holds.
  int find(const Key& key) const {
    for (int number : ways_[key.hash % kWays]) {
      if (number < 0) continue;
      const Standing& each = *answers_[static_cast<size_t>(number)];
      if (each.hash != key.hash || !same(each, key)) continue;
      if (!key.ranged) return number;
      if (key.from >= each.start && key.to - each.start < each.length && key.to - key.from < kPartMax) return number;
    }
    return -1;
  }

  // True from the second time on.
  bool seen(const Key& key) {
    uint32_t& mark = seen_[key.hash % kSeen];
    uint32_t now = static_cast<uint32_t>(key.hash >> 32) | 1;
    bool found = mark == now;
    mark = now;
    return found;
  }

  // The number of the answer, or less than 0 where there is no room. What answers a range must have a body to take it from.
  int add(const Key& key, Standing answer) {
    if (find(key) >= 0 || (key.ranged && answer.body == nullptr)) return -1;
    int* free = nullptr;
    for (int& way : ways_[key.hash % kWays]) {
      if (way < 0) free = &way;
    }
    if (free == nullptr || standing_ == kStandingMax) return -1;
    size_t number = 0;
    while (number < answers_.size() && answers_[number] != nullptr) number += 1;
    if (number == answers_.size()) answers_.emplace_back();
    answer.hash = key.hash;
    answer.split = key.front.length;
    answer.key.assign(reinterpret_cast<const char*>(key.front.start), key.front.length);
    answer.key.append(reinterpret_cast<const char*>(key.back.start), key.back.length);
    answer.ranged = key.ranged;
    answers_[number] = std::make_unique<Standing>(std::move(answer));
    *free = static_cast<int>(number);
    standing_ += 1;
    return *free;
  }

  Standing* at(size_t number) { return number < answers_.size() ? answers_[number].get() : nullptr; }

  // No request is recognized any more. The numbers of those that somebody still takes; the others are gone.
  std::vector<uint32_t> clear() {
    std::vector<uint32_t> used;
    for (auto& bucket : ways_) {
      for (int& way : bucket) way = -1;
    }
    memset(seen_, 0, sizeof(seen_));
    standing_ = 0;
    for (size_t number = 0; number < answers_.size(); number += 1) {
      if (answers_[number] == nullptr) continue;
      answers_[number]->retired = true;
      if (answers_[number]->users > 0) used.push_back(static_cast<uint32_t>(number));
      else answers_[number] = nullptr;
    }
    return used;
  }

  // One connection takes it no more. True where that was the last of a retired one: its number is free.
  bool leave(size_t number) {
    Standing& answer = *answers_[number];
    answer.users -= 1;
    if (answer.users > 0 || !answer.retired) return false;
    answers_[number] = nullptr;
    return true;
  }

  // Names of requests: 22 characters of 6 random bits.
  const char* newId() {
    if (idsAt_ == sizeof(ids_)) {
      static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
      // Up to 256 bytes come whole (getrandom(2)).
      for (size_t at = 0; at < sizeof(ids_);) {
        ssize_t got = getrandom(ids_ + at, sizeof(ids_) - at < 256 ? sizeof(ids_) - at : 256, 0);
        if (got > 0) at += static_cast<size_t>(got);
      }
      for (char& each : ids_) each = letters[each & 63];
      idsAt_ = 0;
    }
    idsAt_ += kIdLength;
    return ids_ + idsAt_ - kIdLength;
  }
 private:
  static constexpr size_t kWays = 1024, kSeen = 8192;
  std::vector<std::unique_ptr<Standing>> answers_;
  size_t standing_ = 0;
  int ways_[kWays][4];
  uint32_t seen_[kSeen] = {};
  char ids_[kIdLength * 256];
  size_t idsAt_ = sizeof(ids_);

  // bytes=FROM-TO and nothing else: every other form is for JavaScript.
  static bool readRange(const uint8_t* text, size_t length, Key* key) {
    static const char unit[] = "bytes=";
    if (length < 9 || memcmp(text, unit, 6) != 0) return false;
    size_t at = 6;
    if (!digits(text, length, &at, &key->from) || at == length || text[at] != '-') return false;
    at += 1;
    return digits(text, length, &at, &key->to) && at == length && key->from <= key->to;
  }

  // Up to 15 digits stay exact in a double.
  static bool digits(const uint8_t* text, size_t length, size_t* at, uint64_t* value) {
    size_t start = *at;
    *value = 0;
    for (; *at < length && text[*at] >= '0' && text[*at] <= '9'; *at += 1) *value = *value * 10 + (text[*at] - '0');
    return *at > start && *at - start <= 15;
  }

  static bool same(const Standing& answer, const Key& key) {
    return answer.ranged == key.ranged && answer.split == key.front.length &&
           answer.key.size() == key.front.length + key.back.length &&
           memcmp(answer.key.data(), key.front.start, key.front.length) == 0 &&
           memcmp(answer.key.data() + key.front.length, key.back.start, key.back.length) == 0;
  }

  static uint64_t mix(const Span& bytes, uint64_t hash) {
    size_t at = 0;
    for (; at + 8 <= bytes.length; at += 8) {
      uint64_t word;
      memcpy(&word, bytes.start + at, 8);
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    uint64_t word = 0;
    memcpy(&word, bytes.start + at, bytes.length - at);
    hash = (hash ^ word ^ bytes.length) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 32);
  }
};

}  // namespace server
