// A strict reader of the heads of answers (RFC 9112). What two programs could read differently is refused, because the bytes behind
// would belong to another answer for one of them. Chunks are read by the listener's reader (../server/chunks.h).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "../server/chunks.h"

namespace client {

using server::ChunkReader;
using server::isA;
using server::Span;

// Status line and header lines together, those of words in between (1xx) counted by themselves.
constexpr size_t kHeadMax = 32 * 1024;
constexpr size_t kLinesMax = 200;
// Words like 103 that may come before one answer.
constexpr int kInterimMax = 8;

// Why an answer is not believed; `faultTexts` of client.ts has the same order.
enum Fault : int {
  kSound = 0,
  kTooLarge,
  kStatusLine,
  kFolded,
  kName,
  kValue,
  kLines,
  kLength,
  kTwoLengths,
  kCoding,
  kBothLengths,
  kChunk,
  kInterim,
  kEarlyEnd,
  kUpgrade,
  kTls,
};

// Names of header lines that JavaScript wants to see, in small letters, and their numbers.
using Names = std::unordered_map<std::string, int>;

struct Line {
  int name;
  size_t start, end;  // of the value, from the start of the head
};

struct Head {
  int status = 0;
  size_t bytes = 0;       // with the empty line
  bool keeps = false;     // the connection may be used again
  bool chunked = false;
  bool untilEnd = false;  // the body ends with the connection
  uint64_t length = 0;    // of the body, where it is neither of both
  int keepSeconds = -1;   // how long the server keeps the connection; -1: it does not say
  std::vector<Line> lines;

  bool isInterim() const { return status < 200; }
};

class AnswerReader {
 public:
  AnswerReader(const char* bytes, size_t length, const Names& names, bool isHead)
      : bytes_(reinterpret_cast<const uint8_t*>(bytes)), length_(length), names_(names), isHead_(isHead) {}

  // True: `head` is there. False: more bytes are needed, or `fault` says what is wrong.
  bool read(Head* head) {
    head_ = head;
    *head = Head{};
    bool whole = statusLine() && headerLines() && framing();
    if (fault == kSound && (at_ > kHeadMax || (!whole && length_ >= kHeadMax))) fault = kTooLarge;
    if (!whole || fault != kSound) return false;
    head->bytes = at_;
    return true;
  }

  Fault fault = kSound;

 private:
  const uint8_t* bytes_;
  size_t length_;
  const Names& names_;
  bool isHead_;
  Head* head_ = nullptr;
  size_t at_ = 0, count_ = 0;
  bool old_ = false, close_ = false, coded_ = false, sized_ = false;

  bool ended() const { return at_ >= length_; }
  bool fail(Fault found) {
    fault = found;
    return false;
  }

  static bool digit(uint8_t c) { return c >= '0' && c <= '9'; }

  bool statusLine() {
    static const char shape[] = "HTTP/1.0 000";
    constexpr size_t kShape = sizeof(shape) - 1;
    for (size_t index = 0; index < kShape && index < length_; index += 1) {
      bool fits = shape[index] == '0' ? digit(bytes_[index]) : bytes_[index] == static_cast<uint8_t>(shape[index]);
      if (!fits) return fail(kStatusLine);
    }
    if (length_ <= kShape) return false;
    if (bytes_[7] > '1') return fail(kStatusLine);
    old_ = bytes_[7] == '0';
    head_->status = (bytes_[9] - '0') * 100 + (bytes_[10] - '0') * 10 + (bytes_[11] - '0');
    if (head_->status < 100 || head_->status > 599) return fail(kStatusLine);
    if (head_->status == 101) return fail(kUpgrade);
    at_ = kShape;
    // Some servers leave out the space where there is no reason.
    if (bytes_[at_] != ' ' && bytes_[at_] != '\r') return fail(kStatusLine);
    while (!ended() && isA(bytes_[at_], server::kValueChar)) at_ += 1;
    return lineEnd(kStatusLine);
  }

  bool lineEnd(Fault otherwise) {
    if (ended()) return false;
    if (bytes_[at_] != '\r') return fail(otherwise);
    if (at_ + 1 >= length_) return false;
    if (bytes_[at_ + 1] != '\n') return fail(otherwise);
    at_ += 2;
    return true;
  }

  bool headerLines() {
    for (;;) {
      if (ended()) return false;
      if (bytes_[at_] == '\r') return lineEnd(kValue);
      if (!headerLine()) return false;
    }
  }

  bool headerLine() {
    if (bytes_[at_] == ' ' || bytes_[at_] == '\t') return fail(kFolded);
    char name[kNameMax];
    size_t start = at_;
    for (; !ended() && isA(bytes_[at_], server::kNameChar); at_ += 1) {
      uint8_t c = bytes_[at_];
      if (c >= 'A' && c <= 'Z') c += 32;
      if (at_ - start < kNameMax) name[at_ - start] = static_cast<char>(c);
    }
    if (ended()) return false;
    size_t length = at_ - start;
    if (length == 0 || bytes_[at_] != ':') return fail(kName);
    at_ += 1;
    while (!ended() && (bytes_[at_] == ' ' || bytes_[at_] == '\t')) at_ += 1;
    size_t from = at_;
    while (!ended() && isA(bytes_[at_], server::kValueChar)) at_ += 1;
    size_t to = at_;
    if (!lineEnd(kValue)) return false;
    while (to > from && (bytes_[to - 1] == ' ' || bytes_[to - 1] == '\t')) to -= 1;
    count_ += 1;
    if (count_ > kLinesMax) return fail(kLines);
    // No name that means something here is as long.
    if (length > kNameMax) return true;
    return known(std::string(name, length), from, to);
  }

  static constexpr size_t kNameMax = 64;

  bool known(const std::string& name, size_t from, size_t to) {
    Span value{bytes_ + from, to - from};
    if (name == "content-length") {
      if (sized_) return fail(kTwoLengths);
      sized_ = true;
      if (!readLength(value)) return false;
    }
    if (name == "transfer-encoding") {
      if (coded_ || !isChunked(value)) return fail(kCoding);
      coded_ = true;
    }
    if (name == "connection") close_ = close_ || hasClose(value);
    if (name == "keep-alive") readKeepAlive(value);
    auto found = names_.find(name);
    if (found != names_.end()) head_->lines.push_back({found->second, from, to});
    return true;
  }

  // Up to 15 digits stay exact in a double.
  bool readLength(const Span& value) {
    if (value.length == 0 || value.length > 15) return fail(kLength);
    for (size_t at = 0; at < value.length; at += 1) {
      if (!digit(value.start[at])) return fail(kLength);
      head_->length = head_->length * 10 + (value.start[at] - '0');
    }
    return true;
  }

  // `timeout=5` anywhere in it (RFC 2068 section 19.7.1). What is more than six digits says nothing.
  void readKeepAlive(const Span& value) {
    std::string text(reinterpret_cast<const char*>(value.start), value.length);
    size_t at = text.find("timeout=");
    if (at == std::string::npos) return;
    int seconds = 0;
    size_t digits = 0;
    for (at += 8; at < text.size() && digit(static_cast<uint8_t>(text[at])) && digits < 7; at += 1, digits += 1)
      seconds = seconds * 10 + (text[at] - '0');
    if (digits > 0 && digits < 7) head_->keepSeconds = seconds;
  }

  static bool isChunked(const Span& value) {
    static const char word[] = "chunked";
    if (value.length != 7) return false;
    for (size_t at = 0; at < 7; at += 1) {
      if ((value.start[at] | 32) != word[at]) return false;
    }
    return true;
  }

  static bool hasClose(const Span& list) {
    static const char word[] = "close";
    for (size_t at = 0; at + 5 <= list.length; at += 1) {
      size_t same = 0;
      while (same < 5 && (list.start[at + same] | 32) == word[same]) same += 1;
      if (same == 5 && edge(list, at - 1) && edge(list, at + 5)) return true;
    }
    return false;
  }
  static bool edge(const Span& list, size_t at) {
    return at >= list.length || list.start[at] == ',' || list.start[at] == ' ' || list.start[at] == '\t';
  }

  bool framing() {
    if (sized_ && coded_) return fail(kBothLengths);
    if (coded_ && old_) return fail(kCoding);
    head_->keeps = !old_ && !close_;
    bool bodiless = isHead_ || head_->status == 204 || head_->status == 304 || head_->isInterim();
    if (bodiless) {
      // Bytes that such an answer has all the same are not its body: nothing behind it is read.
      if (!isHead_ && head_->status != 304 && (coded_ || head_->length > 0)) head_->keeps = false;
      head_->length = 0;
      return true;
    }
    head_->chunked = coded_;
    head_->untilEnd = !coded_ && !sized_;
    if (head_->untilEnd) head_->keeps = false;
    return true;
  }
};

}  // namespace client
