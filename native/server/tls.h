// TLS 1.2 and 1.3 of one server: its certificates, and a session for each connection. OpenSSL sees no socket: what was received is a
// window of bytes that it reads from, and what it writes is gathered, to be sent at once by the server (tls-server.cc).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "openssl.h"
#include "stated-hello.h"

namespace server {

// Plain bytes of one record at most (RFC 8446 section 5.1).
constexpr size_t kRecordMax = 16 * 1024;

// Keys of tickets in memory that all threads share (src/http/ticket-keys.ts).
class TicketKeys {
 public:
  static constexpr size_t kHead = 16, kKey = 80, kPlaces = 4, kName = 16, kCipherKey = 32, kMacKey = 32;
  static constexpr size_t kBytes = kHead + kPlaces * kKey;
  explicit TicketKeys(const uint8_t* memory) : memory_(memory) {}
  // A copy of the key that tickets are made with.
  void newest(uint8_t* to) const;
  // That of a name. 0: it is none of the last three; 1: it is the newest; 2: an older one, whose ticket is to be replaced.
  int find(const uint8_t* name, uint8_t* to) const;

 private:
  const uint8_t* memory_;
  uint32_t count() const { return __atomic_load_n(reinterpret_cast<const uint32_t*>(memory_), __ATOMIC_ACQUIRE); }
  const uint8_t* at(uint32_t number) const { return memory_ + kHead + (number % kPlaces) * kKey; }
};

class TlsContext {
 public:
  struct Given {
    const uint8_t* tickets;
    bool refusesUnknown;
    std::string suites, ciphers, groups;
  };
  TlsContext(const openssl::Calls* calls, Given given);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Adds a certificate to the list that `use` puts in place. '': done; else why it cannot be used.
  std::string add(const std::string& names, const std::string& cert, const std::string& key);
  // False where none was added.
  bool use();
  openssl::Ctx* first() const { return used_.empty() ? nullptr : used_[0].ctx; }

  const openssl::Calls* const ssl;
  const TicketKeys tickets;
  // What OpenSSL has written for the session at hand.
  std::string out;
  // What it is given to read.
  const uint8_t* in = nullptr;
  size_t inLength = 0;
  // New keys of the client in what is being read.
  size_t newKeys = 0;
  // What a record is made of.
  char record[kRecordMax];

 private:
  friend class TlsSession;
  struct Pair {
    std::vector<std::string> names;
    openssl::Ctx* ctx;
  };
  Given given_;
  openssl::BioMethod* method_;
  std::vector<Pair> used_, added_;

  openssl::Ctx* make(std::string* wrong);
  openssl::Ctx* find(std::string_view name) const;
  void drop(std::vector<Pair>* pairs);
};

// One connection.
class TlsSession {
 public:
  explicit TlsSession(TlsContext* context);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  bool isUp = false, failed = false, ends = false;
  // A byte was received.
  bool begun = false;
  // Its handshake waits for a turn, and its socket is not polled meanwhile.
  bool queued = false;
  // It waits for the next sweep, because its address has begun too many handshakes.
  bool delayed = false;
  // Bytes of a body that are sealed at once: fewer where the client is slow.
  size_t share = 256 * 1024;
  // Bytes that were written beside answers since the handshake.
  size_t sent = 0;
  // New keys that its client had since the handshake.
  size_t newKeys = 0;
  // Sealed bytes of this connection in the count of those that wait.
  size_t counted = 0;

  // Uses these bytes from the socket. Returns how many plain ones are now in `to`, which has room for `length` and one record more.
  size_t take(const uint8_t* bytes, size_t length, uint8_t* to);
  // Seals up to a record, into the context's `out`. False: the session is broken.
  bool seal(const void* bytes, size_t length);
  // Says that no more will be sent.
  void close();

 private:
  TlsContext* const context_;
  openssl::Ssl* ssl_;
  StatedHello hello_;
  // Something was written, so the version is chosen.
  bool answered_ = false;
};

}  // namespace server
