// A strict reader of bodies in chunks (RFC 9112 section 7.1). Extensions and trailers are read over, within a bound.
#pragma once

#include "parser.h"

namespace server {

class ChunkReader {
 public:
  // True once the last chunk and its trailers were read.
  bool whole = false;
  bool failed = false;

  // Takes bytes up to the next piece of the body, or to the end of them. `piece` is empty where there is none.
  size_t take(const uint8_t* bytes, size_t length, Span* piece) {
    *piece = {bytes, 0};
    size_t at = 0;
    while (at < length && !whole && !failed) {
      if (phase_ == kData) {
        size_t have = length - at < left_ ? length - at : static_cast<size_t>(left_);
        *piece = {bytes + at, have};
        left_ -= have;
        if (left_ == 0) phase_ = kDataCr;
        return at + have;
      }
      step(bytes[at]);
      at += 1;
    }
    return at;
  }

 private:
  enum Phase { kSize, kExtension, kSizeLf, kData, kDataCr, kDataLf, kLineStart, kLine, kLineLf, kEndLf };
  Phase phase_ = kSize;
  uint64_t left_ = 0;
  int digits_ = 0;
  size_t beside_ = 0;  // bytes of extensions and trailers of the whole body
  bool named_ = false;

  static int hex(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  }

  void expect(bool right, Phase next) {
    if (right) phase_ = next;
    else failed = true;
  }

  void step(uint8_t c) {
    switch (phase_) {
      case kSize: return size(c);
      case kExtension:
        if (c == '\r') phase_ = kSizeLf;
        else beside(isA(c, kValueChar));
        return;
      case kSizeLf:
        expect(c == '\n', left_ == 0 ? kLineStart : kData);
        digits_ = 0;
        return;
      case kDataCr: return expect(c == '\r', kDataLf);
      case kDataLf: return expect(c == '\n', kSize);
      case kLineStart:
        named_ = false;
        if (c == '\r') phase_ = kEndLf;
        else {
          phase_ = kLine;
          beside(isA(c, kNameChar));
        }
        return;
      case kLine: return trailer(c);
      case kLineLf: return expect(c == '\n', kLineStart);
      case kEndLf:
        whole = c == '\n';
        failed = !whole;
        return;
      case kData: return;
    }
  }

  void size(uint8_t c) {
    int digit = hex(c);
    if (digit >= 0) {
      digits_ += 1;
      left_ = left_ * 16 + static_cast<uint64_t>(digit);
      failed = digits_ > 12;
    } else if (digits_ == 0) failed = true;
    else if (c == '\r') phase_ = kSizeLf;
    else expect(c == ';', kExtension);
  }

  void trailer(uint8_t c) {
    if (c == '\r') return expect(named_, kLineLf);
    beside(isA(c, named_ || c == ':' ? kValueChar : kNameChar));
    if (c == ':') named_ = true;
  }

  void beside(bool right) {
    beside_ += 1;
    failed = !right || beside_ > kHeadMax;
  }
};

}  // namespace server
