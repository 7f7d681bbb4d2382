// Where a signature stands in the lines of an answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace server {

constexpr size_t kSignatureBytes = 64, kSignatureText = 88;
constexpr size_t kSecondText = 10;

// What changes in the lines of an answer: ten digits, and a signature, which stands there in base64.
struct Seal {
  char created[kSecondText];
  uint8_t signature[kSignatureBytes];
};

// Where both stand.
struct SealPlaces {
  uint16_t created, signature;
};

constexpr char kBase64Letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// 64 bytes in 88 letters, of which the last two say nothing.
inline void spell(const uint8_t* bytes, char* to) {
  for (size_t from = 0; from < kSignatureBytes; from += 3, to += 4) {
    bool isLast = from + 3 > kSignatureBytes;
    uint32_t bits = static_cast<uint32_t>(bytes[from]) << 16;
    if (!isLast) bits |= static_cast<uint32_t>(bytes[from + 1]) << 8 | bytes[from + 2];
    to[0] = kBase64Letters[bits >> 18];
    to[1] = kBase64Letters[bits >> 12 & 63];
    to[2] = isLast ? '=' : kBase64Letters[bits >> 6 & 63];
    to[3] = isLast ? '=' : kBase64Letters[bits & 63];
  }
}

// Of a letter of base64; 0 of any other.
inline uint32_t valueOf(char letter) {
  if (letter >= 'A' && letter <= 'Z') return static_cast<uint32_t>(letter - 'A');
  if (letter >= 'a' && letter <= 'z') return static_cast<uint32_t>(letter - 'a') + 26;
  if (letter >= '0' && letter <= '9') return static_cast<uint32_t>(letter - '0') + 52;
  return letter == '+' ? 62 : letter == '/' ? 63 : 0;
}

// False: these letters are not how a signature is spelled.
inline bool readSpelled(const char* letters, uint8_t* to) {
  for (size_t at = 0; at < kSignatureText; at += 4) {
    uint32_t bits = 0;
    for (size_t part = 0; part < 4; part += 1) {
      bits = bits << 6 | valueOf(letters[at + part]);
    }
    size_t from = at / 4 * 3;
    for (size_t byte = 0; byte < 3 && from + byte < kSignatureBytes; byte += 1) to[from + byte] = static_cast<uint8_t>(bits >> (16 - 8 * byte));
  }
  char again[kSignatureText];
  spell(to, again);
  return memcmp(letters, again, sizeof(again)) == 0;
}

inline void put(const Seal& seal, const SealPlaces& places, char* lines) {
  memcpy(lines + places.created, seal.created, sizeof(seal.created));
  spell(seal.signature, lines + places.signature);
}

// Takes them out, and leaves blanks. False: there is no signature in these letters, and nothing was changed.
inline bool take(const SealPlaces& places, char* lines, Seal* to) {
  if (!readSpelled(lines + places.signature, to->signature)) return false;
  memcpy(to->created, lines + places.created, sizeof(to->created));
  memset(lines + places.created, ' ', sizeof(to->created));
  memset(lines + places.signature, ' ', kSignatureText);
  return true;
}

// Finds them in lines as this program writes them (src/attest/answer-signature.ts), each with CRLF in front. False: there is no such signature.
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
