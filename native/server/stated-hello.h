// The length that a client states of its first message (RFC 8446 section 4). OpenSSL makes room for that length, up to 128 KiB, when it
// has read four bytes of the message: connections that send no more would take memory for nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace server {

// Follows the records of a client while they are not encrypted.
class StatedHello {
 public:
  // Messages of clients have up to 2 KiB, with keys of post-quantum groups and a ticket in them. OpenSSL has room for this much anyway.
  static constexpr uint32_t kMessageMax = 16 * 1024;

  // Looks at what was received, before it is used. False: a message states more than `kMessageMax`. `isTls13`: no answer was sent yet, or
  // the answer chose TLS 1.3. Its second ClientHello may come behind a change of ciphers, and below 1.3 all is encrypted behind one.
  bool take(const uint8_t* bytes, size_t length, bool isTls13) {
    for (size_t at = 0; at < length && !over_;) {
      if (recordLeft_ == 0) {
        head_[headed_++] = bytes[at++];
        if (headed_ < kRecordHead) continue;
        headed_ = 0;
        recordLeft_ = static_cast<uint32_t>(head_[3] << 8 | head_[4]);
        over_ = head_[0] == kChange && !isTls13;
        continue;
      }
      size_t part = std::min<size_t>(recordLeft_, length - at);
      if (head_[0] == kHandshake && !message(bytes + at, part)) return false;
      at += part;
      recordLeft_ -= static_cast<uint32_t>(part);
    }
    return true;
  }

 private:
  static constexpr uint8_t kChange = 20, kHandshake = 22;
  static constexpr size_t kRecordHead = 5, kMessageHead = 4;

  uint8_t head_[kRecordHead] = {};
  uint8_t headed_ = 0, seen_ = 0;
  bool over_ = false;
  uint32_t recordLeft_ = 0, messageLeft_ = 0, stated_ = 0;

  // Bytes of messages, which may begin and end anywhere in a record.
  bool message(const uint8_t* bytes, size_t length) {
    for (size_t at = 0; at < length;) {
      if (messageLeft_ > 0) {
        size_t part = std::min<size_t>(messageLeft_, length - at);
        messageLeft_ -= static_cast<uint32_t>(part);
        at += part;
        continue;
      }
      // The type of the message, then its length.
      stated_ = seen_ == 0 ? 0 : stated_ << 8 | bytes[at];
      at += 1;
      if (++seen_ < kMessageHead) continue;
      seen_ = 0;
      if (stated_ > kMessageMax) return false;
      messageLeft_ = stated_;
    }
    return true;
  }
};

}  // namespace server
