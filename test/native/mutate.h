// What the programs that mutate heads share: random numbers from one seed, mutations, and a check that ends the program.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

static uint64_t state;
static uint32_t below(uint32_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<uint32_t>(state >> 33) % bound;
}

// A few changes of any kind; once in 200 times up to `longBytes` of padding in the middle.
static std::string mutated(const std::string& from, uint32_t longBytes) {
  static const char marks[] = "\r\n\t :;,?#0aZ\x7f\xff";
  std::string text = from;
  for (uint32_t turn = below(6); turn > 0 && !text.empty(); turn -= 1) {
    size_t at = below(static_cast<uint32_t>(text.size()));
    switch (below(5)) {
      case 0: text[at] = static_cast<char>(below(256)); break;
      case 1: text.erase(at, 1 + below(8)); break;
      case 2: text.insert(at, 1, marks[below(sizeof(marks))]); break;
      case 3: text.insert(at, text.substr(below(static_cast<uint32_t>(text.size())), below(40))); break;
      case 4: text.resize(at); break;
    }
  }
  if (below(200) == 0) text.insert(text.size() / 2, below(longBytes), 'x');
  return text;
}

static void require(bool right, const char* what, const std::string& text) {
  if (right) return;
  printf("%s: %s\n", what, text.c_str());
  exit(1);
}
