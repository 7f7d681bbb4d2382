// What a server needs to answer from its response cache: see response-cache.h for the entries, cached-answer.cc for how they are sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "limits.h"
#include "plain-lines.h"
#include "response-cache.h"
#include "sealed.h"
#include "shared-entries.h"

namespace server {

// Bodies up to this size are cached: a socket takes most of them at once. Larger ones are looked at again while they are sent, whether
// they were blocked meanwhile, which is JavaScript's.
constexpr size_t kCachedBodyMax = 1024 * 1024;
// What a socket does not take of a body that cannot be sent from its file is put aside, up to this size.
constexpr size_t kAsideEachMax = 256 * 1024;
// Bodies that are sent on from their files as slow clients take them: no more of all connections together, so that nobody fills the kernel's
// buffers or keeps others out. Beyond it JavaScript answers, which gives each client its share.
constexpr size_t kSendingMax = 256;
inline size_t sendingMax(size_t connectionsMax) { return connectionsMax / 8 < kSendingMax ? connectionsMax / 8 : kSendingMax; }
// Of all connections together. While so much waits, JavaScript answers.
constexpr size_t kAsideMax = 32 * 1024 * 1024;
// Larger bodies get no more than this part of it: clients that take them slowly do not end the caching of small ones.
constexpr size_t kAsideLargeMax = kAsideMax / 4 * 3, kSmallBody = 16 * 1024;

// 22 random characters of base64url for each request, like those that JavaScript makes (src/serving/request-id.ts).
class RequestIds {
 public:
  static constexpr size_t kLength = kIdLength;
  // False where the system gives no random bytes.
  bool next(char* to);

 private:
  static constexpr size_t kIds = 256, kEach = 24, kBytes = kIds * kEach / 4 * 3;
  char spelled_[kIds * kEach];
  size_t used_ = kIds * kEach;
};

// The Date line of the present second, with CRLF in front (RFC 9110 section 5.6.7).
class DateLine {
 public:
  const char* of(int64_t seconds);
  static constexpr size_t kLength = 37;

 private:
  int64_t second_ = -1;
  char text_[kLength + 1] = "";
};

// One of some events that were counted, for the samples that the operator's page shows (src/actor/sample-rings.ts).
struct Sample {
  double ms, bytes;
  uint32_t count;
  std::string target;
};
constexpr size_t kSamplesMax = 64;
constexpr double kSampleGapMs = 20;

// Numbers in shared memory, which nobody can take away.
struct Cells {
  int32_t* start;
  size_t length;
};

struct CacheState {
  CacheState(size_t maxBytes, uint64_t seed, const std::string& plain, std::string every)
      : cache(maxBytes, seed), lines(plain), every(std::move(every)) {}
  ~CacheState() { Tables::all().leave(&cache); }
  // The answer that another thread has, as this thread's own. Null: there is none, or this thread knows too little of what it rests on.
  CacheEntry* adopt(const CacheKey& key);
  bool knows(const int32_t* cell) const;
  // What it has in common with the other threads of its program. Null: it is alone.
  const void* group = nullptr;
  // Shared memory that answers look at.
  std::vector<Cells> cells;
  ResponseCache cache;
  PlainLines lines;
  // Header lines of every answer, each with CRLF in front.
  const std::string every;
  // Null: what is too old is signed by JavaScript.
  std::unique_ptr<Sealer> sealer;
  // Null: no entry that has a price is used.
  std::unique_ptr<Limited> limits;
  RequestIds ids;
  DateLine date;
  // The head that is being written.
  std::string head;
  std::vector<Sample> samples;
  double sampledMs = 0;
  uint32_t unsampled = 0;
  size_t aside = 0;
  // Answers that their clients have not taken whole; and those of them that are sent on from their files.
  size_t unfinished = 0, sending = 0;
  // Of this turn.
  size_t answered = 0;
};

}  // namespace server
