// Where a signature stands in the lines of an answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace server {

constexpr size_t kSignatureText = 88;
constexpr size_t kSecondText = 10;

// What changes in the lines of an answer: ten digits, and a signature in base64.
struct Seal {
  char created[kSecondText];
  char signature[kSignatureText];
};

// Where both stand.
struct SealPlaces {
  uint16_t created, signature;
};

inline void put(const Seal& seal, const SealPlaces& places, char* lines) {
  memcpy(lines + places.created, seal.created, sizeof(seal.created));
  memcpy(lines + places.signature, seal.signature, sizeof(seal.signature));
}

// Takes them out, and leaves blanks.
inline void take(const SealPlaces& places, char* lines, Seal* to) {
  memcpy(to->created, lines + places.created, sizeof(to->created));
  memcpy(to->signature, lines + places.signature, sizeof(to->signature));
  memset(lines + places.created, ' ', sizeof(to->created));
  memset(lines + places.signature, ' ', sizeof(to->signature));
}

// Finds them in lines as this program writes them (src/attest/signature.ts), each with CRLF in front. False: there is no such signature.
inline bool findSeal(const char* lines, size_t length, SealPlaces* to) {
  constexpr std::string_view input = "\r\nSignature-Input: sig1=(", second = ");created=", signature = "\r\nSignature: sig1=:";
  std::string_view all(lines, length);
  size_t created = all.find(second, std::min(all.find(input), length));
  size_t made = all.find(signature, std::min(created, length));
  if (made == std::string_view::npos) return false;
  created += second.size();
  made += signature.size();
  if (created + kSecondText > made || made + kSignatureText > length || made > UINT16_MAX) return false;
  *to = {static_cast<uint16_t>(created), static_cast<uint16_t>(made)};
  return true;
}

}  // namespace server
