// Heads of answers in a table, most of which have nearly the same lines as another one: what differs is kept, and which one it is
// compared with. A head of 1100 bytes takes some 100.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace server {

// A step by which a head is put together again: so many bytes of the pattern, then so many of its own, and so many of the pattern are
// passed over. Its own bytes stand behind those of the step before, or in the answer's key from a place on, perhaps in other letters:
// keys have base64url, and Content-Digest has plain base64.
struct PackedStep {
  uint16_t same, own, over, from;
};
constexpr uint16_t kNotFromKey = UINT16_MAX, kInPlainLetters = 1 << 15;

inline char urlLetter(char letter) { return letter == '+' ? '-' : letter == '/' ? '_' : letter; }
inline char plainLetter(char letter) { return letter == '-' ? '+' : letter == '_' ? '/' : letter; }

inline bool operator==(const PackedStep& one, const PackedStep& other) {
  return one.same == other.same && one.own == other.own && one.over == other.over && one.from == other.from;
}

// A head as it is kept. No steps: those that are usual with its pattern.
struct Packed {
  size_t pattern;
  std::vector<PackedStep> steps;
  std::string own;
};

class HeadPatterns {
 public:
  // The first one is empty: what is like no other head is kept as it is.
  HeadPatterns() : patterns_(1) {}

  // Packs a head, whose first line has no line end in front and the others have. `key`: what the answer is found by, and its tag, which
  // stand in most heads, too. The pattern is kept until `drop`.
  void pack(std::string_view head, std::string_view key, Packed* to) {
    split(head, &lines_);
    to->pattern = patternFor(head);
    patterns_[to->pattern].uses += 1;
    to->steps.assign(1, {0, 0, 0, kNotFromKey});
    to->own.clear();
    Pattern& pattern = patterns_[to->pattern];
    compare(head, pattern, key, to);
    // Not those by which the pattern is itself.
    if (pattern.usual.empty() && to->steps.size() > 1) pattern.usual = to->steps;
    if (to->steps == pattern.usual) to->steps.clear();
  }

  void drop(size_t pattern) {
    if (pattern == 0) return;
    Pattern& one = patterns_[pattern];
    one.uses -= 1;
    if (one.uses == 0) one = Pattern();
  }

  // Puts a head together. `steps` need not be aligned.
  void unpack(size_t pattern, const char* steps, size_t stepCount, const char* own, const char* key, char* to) const {
    const Pattern& like = patterns_[pattern];
    const char* from = like.text.data();
    if (stepCount == 0) {
      steps = reinterpret_cast<const char*>(like.usual.data());
      stepCount = like.usual.size();
    }
    for (size_t at = 0; at < stepCount; at += 1) {
      PackedStep step;
      memcpy(&step, steps + at * sizeof(step), sizeof(step));
      memcpy(to, from, step.same);
      to += step.same;
      from += step.same + step.over;
      if (step.from == kNotFromKey) {
        memcpy(to, own, step.own);
        own += step.own;
      } else if ((step.from & kInPlainLetters) == 0) {
        memcpy(to, key + step.from, step.own);
      } else {
        std::transform(key + (step.from ^ kInPlainLetters), key + (step.from ^ kInPlainLetters) + step.own, to, plainLetter);
      }
      to += step.own;
    }
  }

 private:
  // Patterns at most, and bytes of each. Beside what the table holds they take some 100 KiB with usual heads, and two MiB where all lines
  // are as short as they can be.
  static constexpr size_t kPatterns = 64, kPatternMax = 8192;
  // Lines of the pattern that are passed over to find one of the same name; and what is looked for in the key at least.
  static constexpr size_t kPassed = 4, kFromKeyMin = 12, kBase64Max = 64;
  // Nothing is looked for in longer keys: where they are thousands of the same letter, each place of them is compared with a long text,
  // and a head takes milliseconds.
  static constexpr size_t kKeyMax = 256;

  // Heads are shorter than 64 KiB (kEntryTextMax).
  struct Line {
    uint16_t start, name, end;
  };
  struct Pattern {
    uint64_t names = 0;
    size_t uses = 0;
    std::string text;
    std::vector<Line> lines;
    std::vector<PackedStep> usual;
  };

  std::vector<Pattern> patterns_;
  std::vector<Line> lines_;
  size_t last_ = 0;

  // Each line with the line end in front of it.
  static void split(std::string_view head, std::vector<Line>* to) {
    to->clear();
    for (size_t at = 0; at < head.size();) {
      size_t end = std::min(head.find('\r', at + 1), head.size());
      size_t colon = std::min(head.substr(at, end - at).find(':'), end - at);
      to->push_back({static_cast<uint16_t>(at), static_cast<uint16_t>(colon), static_cast<uint16_t>(end)});
      at = end;
    }
  }

  // The pattern of a head with the same names in the same order; it becomes one itself where there is none and room. Else the one that was
  // used last, since most lines are the same in all.
  size_t patternFor(std::string_view head) {
    size_t like = patterns_[last_].uses > 0 ? last_ : 0;
    if (head.size() > kPatternMax) return like;
    uint64_t names = 1;
    for (const Line& line : lines_) {
      names = names * 0x9e3779b97f4a7c15u + std::hash<std::string_view>()(head.substr(line.start, line.name));
    }
    size_t room = 0;
    for (size_t at = 1; at < patterns_.size(); at += 1) {
      if (patterns_[at].uses > 0 && patterns_[at].names == names) return last_ = at;
      if (patterns_[at].uses == 0) room = at;
    }
    if (room == 0 && patterns_.size() <= kPatterns) {
      room = patterns_.size();
      patterns_.emplace_back();
    }
    if (room == 0) return like;
    patterns_[room] = {names, 0, std::string(head), lines_, {}};
    return last_ = room;
  }

  void compare(std::string_view head, const Pattern& pattern, std::string_view key, Packed* to) const {
    size_t passed = 0;
    for (const Line& line : lines_) {
      std::string_view text = head.substr(line.start, line.end - line.start);
      size_t found = passed, last = std::min(passed + kPassed, pattern.lines.size());
      while (found < last && !isNamed(pattern, found, text.substr(0, line.name))) found += 1;
      if (found == last) {
        own(text, key, to);
        continue;
      }
      for (; passed < found; passed += 1) over(pattern.lines[passed].end - pattern.lines[passed].start, to);
      const Line& other = pattern.lines[passed];
      compareLine(text, std::string_view(pattern.text).substr(other.start, other.end - other.start), key, to);
      passed += 1;
    }
  }

  static bool isNamed(const Pattern& pattern, size_t at, std::string_view name) {
    const Line& line = pattern.lines[at];
    return std::string_view(pattern.text).substr(line.start, line.name) == name;
  }

  static bool isOfWord(char letter) {
    bool isLetter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    return isLetter || letter == '-' || letter == '_' || letter == '+' || letter == '/';
  }

  // Whole words only, since by chance two begin alike: the steps of all such lines are the same then.
  static void compareLine(std::string_view one, std::string_view other, std::string_view key, Packed* to) {
    size_t least = std::min(one.size(), other.size()), front = 0, back = 0;
    while (front < least && one[front] == other[front]) front += 1;
    while (back < least - front && one[one.size() - 1 - back] == other[other.size() - 1 - back]) back += 1;
    bool isSame = front == one.size() && one.size() == other.size();
    while (!isSame && front > 0 && isOfWord(one[front - 1])) front -= 1;
    while (!isSame && back > 0 && isOfWord(one[one.size() - back])) back -= 1;
    same(front, to);
    own(one.substr(front, one.size() - front - back), key, to);
    over(other.size() - front - back, to);
    same(back, to);
  }

  static void same(size_t length, Packed* to) {
    if (length == 0) return;
    const PackedStep& step = to->steps.back();
    if (step.own > 0 || step.over > 0) to->steps.push_back({0, 0, 0, kNotFromKey});
    to->steps.back().same = static_cast<uint16_t>(to->steps.back().same + length);
  }

  static void own(std::string_view text, std::string_view key, Packed* to) {
    if (text.empty()) return;
    uint16_t from = text.size() < kFromKeyMin ? kNotFromKey : placeIn(key, text);
    bool isInKey = from != kNotFromKey;
    const PackedStep& step = to->steps.back();
    if (step.over > 0 || (step.own > 0 && (isInKey || step.from != kNotFromKey))) to->steps.push_back({0, 0, 0, kNotFromKey});
    if (isInKey) to->steps.back().from = from;
    else to->own.append(text);
    to->steps.back().own = static_cast<uint16_t>(to->steps.back().own + text.size());
  }

  // Where this stands in the key, in these letters or in those of base64url.
  static uint16_t placeIn(std::string_view key, std::string_view text) {
    if (key.size() > kKeyMax) return kNotFromKey;
    size_t found = key.find(text);
    if (found != std::string_view::npos) return static_cast<uint16_t>(found);
    if (text.size() > kBase64Max || text.find_first_of("-_") != std::string_view::npos) return kNotFromKey;
    char letters[kBase64Max];
    std::transform(text.begin(), text.end(), letters, urlLetter);
    found = key.find({letters, text.size()});
    return found != std::string_view::npos ? static_cast<uint16_t>(found | kInPlainLetters) : kNotFromKey;
  }

  static void over(size_t length, Packed* to) { to->steps.back().over = static_cast<uint16_t>(to->steps.back().over + length); }
};

}  // namespace server
