// Who asks, and whether he may: what cached answers cost under limits. The same rules as src/admission/clients.ts and gate.ts, for the
// requests that are plain; all others are JavaScript's.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "buckets.h"

namespace server {

// An address as four words, most significant first; IPv4 as ::ffff:a.b.c.d.
struct Ip {
  int32_t words[4];

  // The bytes of an IPv6 address, in the order of the network.
  static Ip of(const uint8_t* bytes) {
    Ip made;
    for (int at = 0; at < 4; at += 1) {
      uint32_t word;
      memcpy(&word, bytes + 4 * at, sizeof(word));
      made.words[at] = static_cast<int32_t>(ntohl(word));
    }
    return made;
  }
  static Ip ofFour(const uint8_t* bytes) {
    uint8_t mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memcpy(mapped + 12, bytes, 4);
    return of(mapped);
  }
  // False for all but the plain text of an address: JavaScript reads it then.
  bool read(const char* text, size_t length) {
    char copy[INET6_ADDRSTRLEN];
    uint8_t bytes[16];
    if (length == 0 || length >= sizeof(copy)) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    bool isSix = memchr(copy, ':', length) != nullptr;
    if (inet_pton(isSix ? AF_INET6 : AF_INET, copy, bytes) != 1) return false;
    *this = isSix ? of(bytes) : ofFour(bytes);
    return true;
  }
  bool isFour() const { return words[0] == 0 && words[1] == 0 && words[2] == 0xffff; }
  // All but the first bits cleared.
  Ip cut(uint32_t bits) const {
    Ip made = *this;
    for (uint32_t at = 0; at < 4; at += 1) made.words[at] &= static_cast<int32_t>(maskOf(bits, at));
    return made;
  }
  static uint32_t maskOf(uint32_t bits, uint32_t word) {
    uint32_t kept = bits <= word * 32 ? 0 : bits - word * 32;
    return kept == 0 ? 0 : kept >= 32 ? ~0u : ~0u << (32 - kept);
  }
};

struct IpRange {
  Ip first;
  uint32_t bits;
  bool has(const Ip& ip) const { return memcmp(ip.cut(bits).words, first.words, sizeof(first.words)) == 0; }
};

// Whose bucket a request is charged to.
struct Client {
  BucketKey key;
  bool exempt = false;
  // A proxy that is believed: the request names its client.
  bool trusted = false;
  // By which lists of addresses this was found (`Limited.lists`); 0: by none yet.
  uint32_t lists = 0;
};

// HalfSipHash, as src/format/half-sip-hash.ts computes it with 1 round a block and 3 at the end: the second half of its outcome.
inline uint32_t sipHash(const int32_t* words, uint32_t count, uint32_t low, uint32_t high) {
  auto left = [](uint32_t value, int by) { return (value << by) | (value >> (32 - by)); };
  uint32_t v0 = low, v1 = high ^ 0xee, v2 = low ^ 0x6c796765, v3 = high ^ 0x74656462;
  for (uint32_t at = 0; at < count + 3; at += 1) {
    uint32_t word = at < count ? static_cast<uint32_t>(words[at]) : at == count ? count << 26 : 0;
    if (at == count + 1) v2 ^= 0xee;
    else if (at == count + 2) v1 ^= 0xdd;
    v3 ^= word;
    for (int rounds = at > count ? 3 : 1; rounds > 0; rounds -= 1) {
      v0 += v1;
      v1 = left(v1, 5) ^ v0;
      v0 = left(v0, 16);
      v2 += v3;
      v3 = left(v3, 8) ^ v2;
      v0 += v3;
      v3 = left(v3, 7) ^ v0;
      v2 += v1;
      v1 = left(v1, 13) ^ v2;
      v2 = left(v2, 16);
    }
    v0 ^= word;
  }
  return v1 ^ v3;
}

// What was taken for one answer.
struct Taken {
  BucketKey client, resource;
  uint64_t tokens = 0;
  // Of these, from the bucket of the resource: all, or none where the client passed it by.
  uint64_t resourceTokens = 0;
};

struct Limited {
  Buckets ip, resource;
  std::vector<IpRange> trusted, exempt;
  uint32_t sixBits, low, high;
  // Meters: answers that were judged, and tokens taken.
  double *requests, *ipTokens, *resourceTokens;
  // Changes with `trusted` and `exempt`, which the operator may replace.
  uint32_t lists = 1;

  void replace(std::vector<IpRange> newTrusted, std::vector<IpRange> newExempt) {
    trusted = std::move(newTrusted);
    exempt = std::move(newExempt);
    lists += lists == UINT32_MAX ? 2 : 1;
  }

  Client clientAt(const Ip& ip) const {
    Client made;
    Ip cut = ip.isFour() ? ip : ip.cut(sixBits);
    memcpy(made.key.words, cut.words, sizeof(cut.words));
    made.key.hash = sipHash(cut.words, 4, low, high);
    made.exempt = isIn(exempt, ip);
    made.trusted = isIn(trusted, ip);
    made.lists = lists;
    return made;
  }

  // The client that a list of addresses (X-Forwarded-For) names, behind the trusted proxy `socket`: the nearest, from the right, that
  // is no trusted proxy itself; else the farthest. False where an entry is no plain address.
  bool behind(const char* text, size_t length, const Client& socket, Client* to) const {
    *to = socket;
    size_t end = length;
    for (int hops = 0; hops < kHopsMax && end > 0; hops += 1) {
      size_t start = end;
      while (start > 0 && text[start - 1] != ',') start -= 1;
      size_t from = start, until = end;
      end = start == 0 ? 0 : start - 1;
      while (from < until && isBlank(text[from])) from += 1;
      while (until > from && isBlank(text[until - 1])) until -= 1;
      if (from == until) continue;
      Ip ip;
      if (!ip.read(text + from, until - from)) return false;
      *to = clientAt(ip);
      if (!to->trusted) return true;
    }
    return true;
  }

  // Takes the tokens of an answer of so many bytes from both buckets, or nothing. A client that has used little passes by the bucket of a
  // resource that is short, as in src/admission/memory-buckets.ts.
  bool take(const Client& client, const int32_t resourceWords[2], uint64_t bytes, Taken* taken) {
    *taken = {client.key, {{resourceWords[0], resourceWords[1], 0, 0}, static_cast<uint32_t>(resourceWords[1])}, tokensOf(bytes), 0};
    bool hadLittleUsed = false;
    if (ip.take(taken->client, taken->tokens, &hadLittleUsed) != Drawn::kAll) return false;
    Drawn took = resource.take(taken->resource, taken->tokens);
    if (took == Drawn::kAll) taken->resourceTokens = taken->tokens;
    if (took == Drawn::kAll || (took == Drawn::kShort && hadLittleUsed)) return true;
    ip.give(taken->client, taken->tokens);
    return false;
  }

  // Gives back what was taken for bytes that were not sent.
  void returnUnsent(const Taken& taken, uint64_t sentBytes) {
    uint64_t used = tokensOf(sentBytes);
    if (used >= taken.tokens) return;
    ip.give(taken.client, taken.tokens - used);
    if (taken.resourceTokens > 0) resource.give(taken.resource, taken.tokens - used);
  }

  // The answer went out without any of these.
  void giveBack(const Taken& taken) {
    ip.give(taken.client, taken.tokens);
    if (taken.resourceTokens > 0) resource.give(taken.resource, taken.tokens);
  }

 private:
  // As in clients.ts.
  static constexpr int kHopsMax = 32;
  static bool isBlank(char c) { return c == ' ' || c == '\t'; }
  static bool isIn(const std::vector<IpRange>& ranges, const Ip& ip) {
    for (const IpRange& each : ranges) {
      if (each.has(ip)) return true;
    }
    return false;
  }
};

}  // namespace server
