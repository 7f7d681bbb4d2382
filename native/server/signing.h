// Signatures of answers that are repeated, which last for some seconds only.
#pragma once

#include "ready.h"

namespace server {

// Writes a signature into the lines that it was made of.
inline void put(const Seal& seal, char* lines) {
  memcpy(lines + seal.createdAt, seal.created, sizeof(seal.created));
  memcpy(lines + seal.signatureAt, seal.signature, sizeof(seal.signature));
}

// Whether the answer, or that to GET as one to HEAD, has a signature that may be sent in this second. Where that is too old, or was never
// made for HEAD, it is made now. `sealer`: null where JavaScript alone signs.
inline bool isInTime(ReadyAnswers* table, Answer* answer, bool isHead, int64_t now, Sealer* sealer) {
  if (!answer->isSigned()) return true;
  bool isOther = isHead && !answer->isHead;
  int64_t& from = isOther ? answer->headFrom : answer->from;
  int64_t& until = isOther ? answer->headUntil : answer->until;
  if (now >= from && now <= until) return true;
  static const char version[] = "HTTP/1.1 ";
  constexpr size_t kVersion = sizeof(version) - 1;
  // Where nothing is noted at each request, JavaScript notes once a signature that the content was asked for.
  if (sealer == nullptr || answer->asked == nullptr || answer->before < kVersion + 3) return false;
  const char* method = isHead ? "HEAD" : "GET";
  SignedRequest request{answer->beforeText() + kVersion, method, answer->text() + answer->host, strlen(method), answer->target};
  Seal own;
  Seal* seal = isOther ? &answer->headSeal : &own;
  if (!sealer->seal(answer->afterText(), answer->after, request, now, seal)) return false;
  std::lock_guard<std::mutex> lock(table->mutex);
  if (!isOther) put(own, const_cast<char*>(answer->afterText()));
  from = now;
  until = now + sealer->reuseSeconds;
  return true;
}

}  // namespace server
