// Signatures of cached answers, which last for some seconds only.
#pragma once

#include "response-cache.h"
#include "sealed.h"

namespace server {

// Whether the answer, or that to GET as one to HEAD, has a signature that may be sent in this second. Where that is too old, or was never
// made for HEAD, it is made now. `sealer`: null where JavaScript alone signs. `head`: that of the answer without its signature, which is
// written into it.
inline bool isInTime(ResponseCache* table, CacheEntry* answer, bool isHead, int64_t now, Sealer* sealer, char* head) {
  if (!answer->isSigned()) return true;
  bool isOther = isHead && !answer->isHead;
  char* lines = head + answer->before + kIdLength;
  Seal seal;
  const HeadSeal* other = answer->headSeal;
  if (isOther ? other != nullptr && now >= other->from && now <= other->until : now >= answer->from && now <= answer->until) {
    if (!answer->isSealed) return true;
    if (isOther) seal = other->seal;
    else memcpy(&seal, answer->sealText(), sizeof(seal));
    put(seal, answer->places, lines);
    return true;
  }
  static const char version[] = "HTTP/1.1 ";
  constexpr size_t kVersion = sizeof(version) - 1;
  // Where nothing is noted at each request, JavaScript notes once a signature that the content was requested.
  if (sealer == nullptr || answer->noted == nullptr || !answer->isSealed || answer->before < kVersion + 3) return false;
  // Restore the old signature lines: they list what is covered.
  memcpy(&seal, answer->sealText(), sizeof(seal));
  put(seal, answer->places, lines);
  const char* method = isHead ? "HEAD" : "GET";
  SignedRequest request{head + kVersion, method, answer->targetText(), strlen(method), answer->target};
  if (!sealer->seal(lines, answer->after, answer->places, request, now, &seal)) return false;
  put(seal, answer->places, lines);
  std::lock_guard<std::mutex> lock(table->mutex);
  int64_t until = now + sealer->reuseSeconds;
  // Without room it is sent all the same, once.
  if (isOther) return table->keepForHead(answer, {now, until, seal}), true;
  memcpy(const_cast<char*>(answer->sealText()), &seal, sizeof(seal));
  answer->from = now;
  answer->until = until;
  return true;
}

}  // namespace server
