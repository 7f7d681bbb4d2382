// A strict reader of request heads (RFC 9112). What two programs could read differently is refused (request smuggling): see
// heads.ts for the same rules in TypeScript, and test/native/heads.test.ts, which gives both the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace server {

// Request line and header lines together.
constexpr size_t kHeadMax = 16 * 1024;
constexpr int kLinesMax = 100;

// A request in the inbox: these numbers, then five for each header line. Offsets count from kBase, the place of the head.
enum Field {
  kKind, kSlot, kFlags, kBase, kMethodStart, kMethodEnd, kPathStart, kPathEnd, kQueryStart, kQueryEnd, kTextEnd,
  kLengthHigh, kLengthLow, kCount, kLines
};
constexpr int kLineFields = 5;  // hash of the name, start and end of the name, start and end of the value
constexpr int kRequestMax = kLines + kLineFields * kLinesMax;

enum Flag { kHttp10 = 1, kKeep = 2, kBody = 4, kChunked = 8, kExpects = 16, kFirst = 32 };

struct Fault {
  int status;
  const char* word;
};

// One of: more bytes are needed (both empty), a head of `consumed` bytes, or a fault.
struct Parsed {
  size_t consumed;
  const Fault* fault;
};

namespace faults {
// RFC 6585 section 5.
inline const Fault tooLarge{431, "the head is too large"};
inline const Fault method{400, "the method has characters that no method has"};
inline const Fault target{400, "the target is no path and no address, or has characters that must be escaped"};
inline const Fault version{400, "the first line does not end with a version"};
inline const Fault otherVersion{505, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
inline const Fault folding{400, "a header line is folded"};
inline const Fault name{400, "a header line has no sound name"};
inline const Fault value{400, "a header line has characters that it must not have"};
inline const Fault lines{431, "too many header lines"};
inline const Fault noHost{400, "no Host line"};
inline const Fault twoHosts{400, "two Host lines"};
inline const Fault host{400, "the Host line names no host"};
inline const Fault twoLengths{400, "two Content-Length lines"};
inline const Fault length{400, "a Content-Length that is no number"};
inline const Fault coding{400, "a Transfer-Encoding other than one chunked"};
inline const Fault both{400, "both Content-Length and Transfer-Encoding"};
inline const Fault chunksBehind{400, "chunks where none can be"};
inline const Fault chunk{400, "a malformed chunk"};
inline const Fault late{408, "the request did not arrive in time"};
}  // namespace faults

enum Class : uint8_t { kNameChar = 1, kValueChar = 2, kTargetChar = 4, kHostChar = 8 };

struct Classes {
  uint8_t of[256] = {};
  constexpr Classes() {
    for (int c = 0; c < 256; c += 1) {
      bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      if (alnum || has("!#$%&'*+-.^_`|~", c)) of[c] |= kNameChar;
      if (c == '\t' || (c >= 0x20 && c != 0x7f)) of[c] |= kValueChar;
      if (c > 0x20 && c < 0x7f && c != '#') of[c] |= kTargetChar;
      if (alnum || has("._~%!$&'()*+,;=:[]-", c)) of[c] |= kHostChar;
    }
  }
  static constexpr bool has(const char* list, int c) {
    for (; *list != '\0'; list += 1) {
      if (*list == c) return true;
    }
    return false;
  }
};
inline constexpr Classes kClasses{};

inline bool isA(uint8_t c, Class what) { return (kClasses.of[c] & what) != 0; }

struct Span {
  const uint8_t* start;
  size_t length;
  bool is(const char* text) const { return length == strlen(text) && memcmp(start, text, length) == 0; }
  // The same without regard to letter case; `text` has small letters.
  bool isIn(const char* text) const {
    if (length != strlen(text)) return false;
    for (size_t at = 0; at < length; at += 1) {
      uint8_t c = start[at];
      if (c >= 'A' && c <= 'Z') c += 32;
      if (c != static_cast<uint8_t>(text[at])) return false;
    }
    return true;
  }
};

// Reads one head. Names are put into small letters in place.
class HeadReader {
 public:
  HeadReader(uint8_t* bytes, size_t length, int32_t* out) : bytes_(bytes), length_(length), out_(out) {}

  Parsed read() {
    // One empty line in front is forgiven (RFC 9112 section 2.2).
    if (length_ > 0 && bytes_[0] == '\r') at_ = 2;
    if (at_ == 2 && length_ > 1 && bytes_[1] != '\n') return {0, &faults::method};
    out_[kFlags] = 0;
    out_[kCount] = 0;
    const Fault* fault = nullptr;
    bool whole = firstLine(&fault) && headerLines(&fault) && framing(&fault);
    if (fault != nullptr) return {0, fault};
    if (at_ > kHeadMax || (!whole && length_ >= kHeadMax)) return {0, &faults::tooLarge};
    return {whole ? at_ : 0, nullptr};
  }

 private:
  uint8_t* bytes_;
  size_t length_;
  int32_t* out_;
  size_t at_ = 0;
  Span host_{nullptr, 0}, size_{nullptr, 0}, coding_{nullptr, 0}, authority_{nullptr, 0};
  int32_t* hostLine_ = nullptr;
  bool close_ = false;

  bool ended() const { return at_ >= length_; }
  int32_t offset() const { return static_cast<int32_t>(at_); }

  // Each part is false where bytes are missing, or a fault was found.
  bool firstLine(const Fault** fault) {
    size_t start = at_;
    out_[kMethodStart] = offset();
    while (!ended() && bytes_[at_] >= 'A' && bytes_[at_] <= 'Z') at_ += 1;
    if (at_ - start > 20) return fail(fault, faults::method);
    if (ended()) return false;
    if (at_ == start || bytes_[at_] != ' ') return fail(fault, faults::method);
    out_[kMethodEnd] = offset();
    at_ += 1;
    return target(fault) && version(fault);
  }

  bool target(const Fault** fault) {
    if (ended()) return false;
    Span method{bytes_ + out_[kMethodStart], static_cast<size_t>(out_[kMethodEnd] - out_[kMethodStart])};
    if (bytes_[at_] == '*' && method.is("OPTIONS")) return wholeServer(fault);
    if (bytes_[at_] != '/' && !authority(fault)) return false;
    size_t query = 0;
    out_[kPathStart] = offset();
    for (; !ended() && isA(bytes_[at_], kTargetChar); at_ += 1) {
      if (bytes_[at_] == '?' && query == 0) query = at_;
    }
    if (ended()) return false;
    if (bytes_[at_] != ' ') return fail(fault, faults::target);
    out_[kPathEnd] = query == 0 ? offset() : static_cast<int32_t>(query);
    // No path is the path "/": the last slash of the scheme stands for it.
    if (out_[kPathEnd] == out_[kPathStart]) {
      out_[kPathEnd] = static_cast<int32_t>(authority_.start - bytes_);
      out_[kPathStart] = out_[kPathEnd] - 1;
    }
    out_[kQueryStart] = query == 0 ? offset() : static_cast<int32_t>(query + 1);
    out_[kQueryEnd] = offset();
    at_ += 1;
    return true;
  }

  // The asterisk form (RFC 9112 section 3.2.4) asks about the server and no resource of it. It is answered like the path "/", for
  // which the slash of the version stands.
  bool wholeServer(const Fault** fault) {
    if (at_ + 1 >= length_) return false;
    if (bytes_[at_ + 1] != ' ') return fail(fault, faults::target);
    out_[kPathStart] = offset() + 6;
    out_[kPathEnd] = out_[kPathStart] + 1;
    at_ += 1;
    out_[kQueryStart] = out_[kQueryEnd] = offset();
    at_ += 1;
    return true;
  }

  // The absolute form (RFC 9112 section 3.2.2): a scheme, and a host that takes the place of the Host line.
  bool authority(const Fault** fault) {
    for (const char* wanted = "https://"; *wanted != '\0'; wanted += 1) {
      if (ended()) return false;
      uint8_t c = bytes_[at_];
      if (c >= 'A' && c <= 'Z') c += 32;
      if (c == *wanted) at_ += 1;
      else if (*wanted != 's') return fail(fault, faults::target);
    }
    size_t start = at_;
    while (!ended() && isA(bytes_[at_], kHostChar)) at_ += 1;
    if (ended()) return false;
    uint8_t next = bytes_[at_];
    bool named = at_ > start && bytes_[start] != ':';
    if (!named || (next != '/' && next != '?' && next != ' ')) return fail(fault, faults::target);
    authority_ = Span{bytes_ + start, at_ - start};
    return true;
  }

  bool version(const Fault** fault) {
    static const char shape[] = "HTTP/0.0\r\n";
    size_t here = length_ - at_ < 10 ? length_ - at_ : 10;
    const uint8_t* found = bytes_ + at_;
    for (size_t index = 0; index < here; index += 1) {
      bool digit = shape[index] == '0' && found[index] >= '0' && found[index] <= '9';
      if (!digit && found[index] != shape[index]) return fail(fault, faults::version);
    }
    if (here < 10) return false;
    if (found[5] != '1' || found[7] > '1') return fail(fault, faults::otherVersion);
    if (found[7] == '0') out_[kFlags] |= kHttp10;
    at_ += 10;
    return true;
  }

  bool headerLines(const Fault** fault) {
    for (;;) {
      if (ended()) return false;
      if (bytes_[at_] == '\r') {
        if (at_ + 1 >= length_) return false;
        if (bytes_[at_ + 1] != '\n') return fail(fault, faults::value);
        at_ += 2;
        return true;
      }
      if (!headerLine(fault)) return false;
    }
  }

  bool headerLine(const Fault** fault) {
    if (bytes_[at_] == ' ' || bytes_[at_] == '\t') return fail(fault, faults::folding);
    size_t start = at_;
    uint32_t hash = 0;
    for (; !ended() && isA(bytes_[at_], kNameChar); at_ += 1) {
      if (bytes_[at_] >= 'A' && bytes_[at_] <= 'Z') bytes_[at_] += 32;
      hash = hash * 31 + bytes_[at_];
    }
    if (ended()) return false;
    if (at_ == start || bytes_[at_] != ':') return fail(fault, faults::name);
    Span name{bytes_ + start, at_ - start};
    at_ += 1;
    while (!ended() && (bytes_[at_] == ' ' || bytes_[at_] == '\t')) at_ += 1;
    size_t from = at_;
    while (!ended() && isA(bytes_[at_], kValueChar)) at_ += 1;
    if (ended()) return false;
    if (bytes_[at_] != '\r') return fail(fault, faults::value);
    if (at_ + 1 >= length_) return false;
    if (bytes_[at_ + 1] != '\n') return fail(fault, faults::value);
    size_t to = at_;
    while (to > from && (bytes_[to - 1] == ' ' || bytes_[to - 1] == '\t')) to -= 1;
    at_ += 2;
    if (out_[kCount] == kLinesMax) return fail(fault, faults::lines);
    int32_t* line = out_ + kLines + kLineFields * out_[kCount];
    out_[kCount] += 1;
    line[0] = static_cast<int32_t>(hash);
    line[1] = static_cast<int32_t>(start);
    line[2] = static_cast<int32_t>(start + name.length);
    line[3] = static_cast<int32_t>(from);
    line[4] = static_cast<int32_t>(to);
    return known(name, Span{bytes_ + from, to - from}, fault);
  }

  // Lines that say how the connection goes on.
  bool known(const Span& name, const Span& value, const Fault** fault) {
    if (name.is("host")) {
      hostLine_ = out_ + kLines + kLineFields * (out_[kCount] - 1);
      return once(&host_, value, fault, faults::twoHosts);
    }
    if (name.is("content-length")) return once(&size_, value, fault, faults::twoLengths);
    if (name.is("transfer-encoding")) return once(&coding_, value, fault, faults::coding);
    if (name.is("connection")) close_ = close_ || hasWord(value, "close");
    if (name.is("expect") && hasWord(value, "100-continue")) out_[kFlags] |= kExpects;
    return true;
  }

  static bool once(Span* kept, const Span& value, const Fault** fault, const Fault& twice) {
    if (kept->start != nullptr) return fail(fault, twice);
    *kept = value;
    return true;
  }

  // Whether a list has this word, in any case.
  static bool hasWord(const Span& list, const char* word) {
    size_t length = strlen(word);
    for (size_t at = 0; at + length <= list.length; at += 1) {
      size_t same = 0;
      while (same < length && (list.start[at + same] | 32) == word[same]) same += 1;
      if (same == length && edge(list, at - 1) && edge(list, at + length)) return true;
    }
    return false;
  }
  static bool edge(const Span& list, size_t at) { return at >= list.length || strchr(", \t", list.start[at]) != nullptr; }

  bool framing(const Fault** fault) {
    bool old = (out_[kFlags] & kHttp10) != 0;
    if (!old && !close_) out_[kFlags] |= kKeep;
    if (host_.start == nullptr && (!old || authority_.start != nullptr)) return fail(fault, faults::noHost);
    for (size_t at = 0; at < host_.length; at += 1) {
      if (!isA(host_.start[at], kHostChar)) return fail(fault, faults::host);
    }
    if (authority_.start != nullptr) {
      hostLine_[3] = static_cast<int32_t>(authority_.start - bytes_);
      hostLine_[4] = hostLine_[3] + static_cast<int32_t>(authority_.length);
    }
    out_[kLengthHigh] = out_[kLengthLow] = 0;
    out_[kTextEnd] = offset();
    if (size_.start != nullptr && coding_.start != nullptr) return fail(fault, faults::both);
    if (coding_.start != nullptr) {
      // Names of codings have no letter case (RFC 9112 section 7).
      if (!coding_.isIn("chunked")) return fail(fault, faults::coding);
      Span method{bytes_ + out_[kMethodStart], static_cast<size_t>(out_[kMethodEnd] - out_[kMethodStart])};
      if (old || method.is("GET") || method.is("HEAD")) return fail(fault, faults::chunksBehind);
      out_[kFlags] |= kBody | kChunked;
    }
    return size_.start == nullptr || readLength(fault);
  }

  // Up to 15 digits stay exact in a double.
  bool readLength(const Fault** fault) {
    if (size_.length == 0 || size_.length > 15) return fail(fault, faults::length);
    int64_t value = 0;
    for (size_t at = 0; at < size_.length; at += 1) {
      if (size_.start[at] < '0' || size_.start[at] > '9') return fail(fault, faults::length);
      value = value * 10 + (size_.start[at] - '0');
    }
    if (value > 0) out_[kFlags] |= kBody;
    out_[kLengthHigh] = static_cast<int32_t>(value >> 30);
    out_[kLengthLow] = static_cast<int32_t>(value & ((1 << 30) - 1));
    return true;
  }

  static bool fail(const Fault** fault, const Fault& found) {
    *fault = &found;
    return false;
  }
};

}  // namespace server
