// Signs the head of an answer anew (RFC 9421), by what its Signature-Input line says is signed. What is signed besides the second and
// the method stays the same for as long as the answer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "../borrowed-key.h"
#include "seal.h"

namespace server {

// What is signed of an answer beside its lines, all as text.
struct SignedRequest {
  const char *status, *method, *path;
  size_t methodLength, pathLength;
};

class Sealer {
 public:
  Sealer(const borrowed_key::Key& key, int64_t reuseSeconds) : reuseSeconds(reuseSeconds), sign_(key.sign) {
    memcpy(key_.secret, key.secret, sizeof(key_.secret));
  }

  // So old may a signature be when it goes out.
  const int64_t reuseSeconds;

  // Signs these lines, each with CRLF in front, in this second. False: what they say is signed is not what is signed here, and nobody
  // but JavaScript knows how; or it does not stand where it should.
  bool seal(const char* lines, size_t length, const SealPlaces& places, const SignedRequest& request, int64_t second, Seal* to) {
    if (second < 1000000000 || second > 9999999999) return false;
    Text input, signature;
    if (!split(lines, length) || !only("signature-input", &input) || !only("signature", &signature)) return false;
    static const char label[] = "sig1=";
    constexpr size_t kLabel = sizeof(label) - 1;
    if (signature.length != kLabel + kSignatureText + 2 || memcmp(signature.start, label, kLabel) != 0) return false;
    if (signature.start[kLabel] != ':' || signature.start[signature.length - 1] != ':') return false;
    if (input.length <= kLabel || memcmp(input.start, label, kLabel) != 0) return false;
    base_.clear();
    const char* at = input.start + kLabel;
    const char* end = input.start + input.length;
    const char* created = components(at, end, request);
    if (created == nullptr) return false;
    if (created != lines + places.created || signature.start + kLabel + 1 != lines + places.signature) return false;
    for (size_t digit = kSecondText; digit > 0; digit -= 1, second /= 10) to->created[digit - 1] = static_cast<char>('0' + second % 10);
    base_.append("\"@signature-params\": ");
    base_.append(at, created);
    base_.append(to->created, kSecondText);
    base_.append(created + kSecondText, end);
    static_assert(sizeof(to->signature) == borrowed_key::kSignature, "it is signed into");
    sign_(key_.secret, reinterpret_cast<const uint8_t*>(base_.data()), base_.size(), to->signature);
    return true;
  }

 private:
  struct Text {
    const char* start;
    size_t length;
  };
  struct Line {
    Text name, value;
    uint32_t hash;
  };
  static constexpr size_t kLinesMax = 160;

  borrowed_key::Sign sign_;
  borrowed_key::Key key_;
  std::string base_;
  Line lines_[kLinesMax];
  size_t count_ = 0;

  static char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

  static uint32_t hashed(const char* text, size_t length) {
    uint32_t hash = 0x811c9dc5;
    for (size_t at = 0; at < length; at += 1) hash = (hash ^ static_cast<uint8_t>(lower(text[at]))) * 0x01000193;
    return hash;
  }

  static bool isNamed(const Line& line, const char* name, size_t length, uint32_t hash) {
    if (line.hash != hash || line.name.length != length) return false;
    for (size_t at = 0; at < length; at += 1) {
      if (lower(line.name.start[at]) != name[at]) return false;
    }
    return true;
  }

  bool split(const char* text, size_t length) {
    const char* end = text + length;
    count_ = 0;
    for (const char* at = text; at < end;) {
      if (count_ == kLinesMax || end - at < 2 || at[0] != '\r' || at[1] != '\n') return false;
      at += 2;
      const void* stop = memchr(at, '\r', static_cast<size_t>(end - at));
      const char* over = stop == nullptr ? end : static_cast<const char*>(stop);
      const void* found = memchr(at, ':', static_cast<size_t>(over - at));
      if (found == nullptr) return false;
      const char* colon = static_cast<const char*>(found);
      const char *from = colon + 1, *to = over;
      while (from < to && (*from == ' ' || *from == '\t')) from += 1;
      while (to > from && (to[-1] == ' ' || to[-1] == '\t')) to -= 1;
      size_t nameLength = static_cast<size_t>(colon - at);
      lines_[count_] = {{at, nameLength}, {from, static_cast<size_t>(to - from)}, hashed(at, nameLength)};
      count_ += 1;
      at = over;
    }
    return true;
  }

  // The line of this lower-case name. False: there is none, or there are several.
  bool only(const char* name, size_t length, Text* value) {
    uint32_t hash = hashed(name, length);
    const Line* found = nullptr;
    for (size_t step = 0; step < count_; step += 1) {
      const Line& line = lines_[step];
      if (line.hash != hash) continue;
      if (found != nullptr || !isNamed(line, name, length, hash)) return false;
      found = &line;
    }
    if (found != nullptr) *value = found->value;
    return found != nullptr;
  }
  bool only(const char* name, Text* value) { return only(name, strlen(name), value); }

  static bool is(const char* start, size_t length, const char* word) { return length == strlen(word) && memcmp(start, word, length) == 0; }

  // Adds what the inner list of components, which begins at `at`, says is signed. Where the digits of the second begin; null: they are
  // not to be had.
  const char* components(const char* at, const char* end, const SignedRequest& request) {
    if (at == end || *at != '(') return nullptr;
    for (at += 1;; at += 1) {
      if (at == end || *at != '"') return nullptr;
      const char* name = at + 1;
      const void* found = memchr(name, '"', static_cast<size_t>(end - name));
      if (found == nullptr) return nullptr;
      const char* close = static_cast<const char*>(found);
      size_t length = static_cast<size_t>(close - name);
      at = close + 1;
      bool isOfRequest = end - at > 4 && memcmp(at, ";req", 4) == 0;
      if (isOfRequest) at += 4;
      Text value{};
      if (!component(name, length, isOfRequest, request, &value)) return nullptr;
      base_.append(name - 1, at);
      base_.append(": ");
      base_.append(value.start, value.length);
      base_.push_back('\n');
      if (at < end && *at == ')') break;
      if (at == end || *at != ' ') return nullptr;
    }
    static const char created[] = ");created=";
    constexpr size_t kCreated = sizeof(created) - 1;
    if (static_cast<size_t>(end - at) < kCreated + kSecondText || memcmp(at, created, kCreated) != 0) return nullptr;
    at += kCreated;
    for (size_t digit = 0; digit < kSecondText; digit += 1) {
      if (at[digit] < '0' || at[digit] > '9') return nullptr;
    }
    // One digit more would be another number.
    return at + kSecondText < end && at[kSecondText] == ';' ? at : nullptr;
  }

  bool component(const char* name, size_t length, bool isOfRequest, const SignedRequest& request, Text* value) {
    if (isOfRequest) {
      if (is(name, length, "@method")) return *value = {request.method, request.methodLength}, true;
      if (is(name, length, "@path")) return *value = {request.path, request.pathLength}, true;
      return false;
    }
    if (is(name, length, "@status")) return *value = {request.status, 3}, true;
    if (length == 0 || name[0] == '@' || !only(name, length, value)) return false;
    for (size_t at = 0; at < value->length; at += 1) {
      if (static_cast<uint8_t>(value->start[at]) >= 0x80) return false;
    }
    return true;
  }
};

}  // namespace server
