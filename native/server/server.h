// One listening socket and its connections, on the event loop of one thread. Everything that happened since the last turn goes to
// JavaScript in one call (the inbox); JavaScript answers by `send`, which tries the socket at once, or
// at the end of the turn where the answer is small and whole.
#pragma once

#include <errno.h>

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chunks.h"
#include "../loop-bridge.h"
#include "parser.h"
#include "cache-state.h"
#include "tls.h"

namespace server {

// What the first number of a message in the inbox says. A request is described in parser.h; the others are:
// kData slot, start and length in the shared bytes, 1 where it is the last | kWritable slot | kGone slot
enum Kind { kRequest = 1, kData = 2, kWritable = 3, kGone = 4 };
constexpr size_t kShortMessage = 5;

// Bodies from this size on are sent with a bound on the bytes in flight.
constexpr size_t kLarge = 128 * 1024;

// Bodies from this size on are sent from their file, where they lie in one (docs/decisions/bodies-from-files.md).
constexpr size_t kFromFile = 128 * 1024;

// Read from a socket at once.
constexpr size_t kReadMax = 64 * 1024;

// Numbers of the inbox, and bytes, that a turn needs at least; every connection may have something to say on top of it.
constexpr size_t kInboxMin = kRequestMax;
constexpr size_t kBytesMin = 2 * kHeadMax + kReadMax;
inline size_t inboxReserve(size_t connectionsMax) { return kInboxMin + 4 * kShortMessage * connectionsMax; }

// How bytes are handed to `send`.
enum How { kEnd = 1, kClose = 2, kCopy = 4 };

struct Limits {
  double headMs, idleMs, stallMs, lingerMs;
  size_t connectionsMax;
};

// Memory that both sides see. It outlives the server, and JavaScript cannot detach it.
struct Shared {
  int32_t* inbox;
  size_t inboxLength;
  uint8_t* bytes;
  size_t bytesLength;
  uint8_t* outbox;
  size_t outboxLength;
};

// What a socket took of a head and a body together, or an error number where it took nothing. `lost`: bytes of the body could not be
// read, after those that were sent.
struct Took {
  size_t bytes;
  int error;
  bool lost;
};

// The socket is not just full.
inline bool isHard(int error) { return error != 0 && error != EAGAIN && error != EINTR; }

struct Connection;

constexpr size_t kNoRegion = SIZE_MAX;

// What is left to be sent of a cached body, out of memory of a region.
struct BodyLeft {
  const uint8_t* start = nullptr;
  size_t length = 0;
  size_t region = kNoRegion;
};

class Server {
 public:
  // `hear` gets the number of numbers in the inbox; they are gone when it returns.
  Server(uv_loop_t* loop, Shared shared, Limits limits, std::function<void(size_t)> hear);

  // 0, or an error number. The port is then known.
  int listen(const std::string& host, int port);
  int port = 0;

  // Slots that were ever used: every other number is none.
  size_t slots() const { return slots_.size(); }
  size_t outboxLength() const { return shared_.outboxLength; }

  // Sends `head` bytes (no more than the outbox has) of the outbox and then `body`. How much of the body the socket took, or
  // was put aside (kCopy); less than 0 where the bytes of the body could not be read: the connection is to be dropped.
  int64_t send(size_t slot, size_t head, const uint8_t* body, size_t length, int how);
  // The body of this request is wanted from now on.
  void read(size_t slot);
  // No more of the body is wanted until `read`: what the client sends stays in the kernel, whose buffer soon is full.
  void pause(size_t slot);
  // Behind the answer that is outstanding nothing is read until `release`: what the client sends stays in the kernel, whose
  // buffer soon is full.
  void hold(size_t slot);
  void release(size_t slot);
  // Closes without a message to JavaScript, which has dropped the answer.
  void drop(size_t slot);
  std::string address(size_t slot) const;
  // Closes connections that take too long. `now` in milliseconds of a clock that never goes back. What waits in a socket is used before
  // its connection is judged: this thread may not have run for a while.
  void sweep(double now);
  // From now on requests are answered from the response cache, too. Null where it was never called.
  void openCache(size_t maxBytes, uint64_t seed, const std::string& plain, std::string every) {
    cacheState_ = std::make_unique<CacheState>(maxBytes, seed, plain, std::move(every));
  }
  // TLS is spoken from now on; to be called before anything was accepted.
  void speakTls(std::unique_ptr<TlsContext> tls);
  TlsContext* tls() { return tls_.get(); }
  CacheState* cacheState() { return cacheState_.get(); }
  const uint8_t* outbox() const { return shared_.outbox; }
  // Accepts no new connection, and closes idle ones of which no request waits.
  void shut();
  // Ends everything at once. `over` is called when nothing of this server is left in the loop.
  void destroy(std::function<void()> over);

 private:
  friend struct Connection;
  loop_bridge::Loop loop_;
  Shared shared_;
  Limits limits_;
  std::function<void(size_t)> hear_;
  uv_timer_t* retry_;
  uv_poll_t* listener_ = nullptr;
  int listenFd_ = -1;
  bool accepting_ = false, closing_ = false, delivering_ = false;
  double now_ = 0;
  uint64_t accepted_ = 0;
  size_t open_ = 0, requests_ = 0;
  size_t inboxAt_ = 0, bytesAt_ = 0;
  std::vector<Connection*> slots_;
  std::vector<size_t> free_, freedNext_, again_;
  // Whole small answers of this turn, one behind another: they go out when JavaScript is done with all of it. A system call
  // between two requests would leave the processor's caches cold for the second.
  struct Staged {
    size_t slot, start, length;
  };
  std::vector<Staged> staged_;
  std::string stage_;
  std::unique_ptr<CacheState> cacheState_;

  // Null: plain HTTP. Sealed bytes that wait; unfinished handshakes; those of this turn, and how many it may have.
  std::unique_ptr<TlsContext> tls_;
  size_t waiting_ = 0, shaking_ = 0, shakes_ = 0, shakesMax_ = 8;
  // When there were more than a turn may have.
  double pressed_ = -1e9;
  // Slots of connections whose handshakes wait for a turn, the newest last; some may be over.
  std::vector<size_t> shakers_;
  struct ShakeRate {
    uint64_t who;
    double tokens, since;
  };
  std::vector<ShakeRate> shakeRates_;
  std::vector<uint8_t> received_;

  void accept();
  void resume();
  void retry();
  void crowdOut();
  void add(int fd, uint64_t who, const Ip& ip);
  void handOver();
  void takeUp(size_t slot);
  void later(size_t slot);
  bool hasRoom() const;
  bool put(const uint8_t* body, size_t length, std::string* to);
  void pushEvent(int32_t kind, const Connection* connection, size_t start = 0, size_t length = 0, bool last = false);

  void ready(Connection* c, int status, int events);
  void readable(Connection* c);
  void writable(Connection* c);
  void sawEnd(Connection* c, uint8_t* bytes, size_t length);
  void leftOnHold(Connection* c);
  void take(Connection* c, uint8_t* bytes, size_t length);
  void takeHead(Connection* c, uint8_t* bytes, size_t length);
  void takeBody(Connection* c, uint8_t* bytes, size_t length);
  void flush();
  void finish(Connection* c);
  void await(Connection* c);
  void refuse(Connection* c, const Fault& fault);
  void cutOff(Connection* c);
  void linger(Connection* c);
  bool heed(Connection* c);
  bool isLate(const Connection* c, bool isCrowded) const;
  bool hasLingered(const Connection* c, bool isCrowded) const;
  void expire(Connection* c, bool isCrowded);
  void gone(Connection* c);
  void remove(Connection* c);
  void arm(Connection* c, int events);
  void limitInFlight(Connection* c);
  Took transmit(Connection* c, const uint8_t* head, size_t headLength, const uint8_t* body, size_t length, bool isRest = false);

  bool mayShake(const Connection* c) const;
  bool mayBegin(const Connection* c);
  void queueShake(Connection* c);
  void renewShakes(bool wasBusy);
  void secure(Connection* c);
  void crowdOutShaking();
  ssize_t receive(Connection* c, uint8_t* to, size_t max);
  bool push(Connection* c);
  void countWaiting(Connection* c);
  void say(Connection* c, const char* text, size_t length);
  Took transmitSealed(Connection* c, const uint8_t* head, size_t headLength, const uint8_t* body, size_t length, bool isWhole);
  int64_t sendSealed(Connection* c, size_t head, const uint8_t* body, size_t length, int how);
  void flushSealed(Connection* c, const char* text, size_t length);
  bool setAside(Connection* c, const uint8_t* body, size_t length);
  void sayEnd(Connection* c);
  void endTls(Connection* c);

  bool answerFromCache(Connection* c, const uint8_t* bytes, const int32_t* out);
  void afterCachedAnswer(Connection* c);
  void finishCached(Connection* c, Count ending);
  void sendLater(Connection* c, const BodyLeft& body);
  void noLater(Connection* c);
  bool isLaterHere(Connection* c);
  void lookAt(Connection* c);
  void note(const CacheEntry& answer, double nowMs, size_t bytes);
  bool admit(Connection* c, const uint8_t* bytes, const int32_t* out, const CacheEntry& answer, size_t length);
};

enum class Phase { kHead, kAnswering, kLingering };

struct Connection {
  Server* server;
  uv_poll_t* poll;
  int fd;
  size_t slot;
  uint64_t number = 0;    // in the order in which connections were accepted
  int events = 0;
  Phase phase = Phase::kHead;
  bool first = true;      // no request was read yet
  bool announced = false;      // JavaScript has heard of it
  bool begun = false;     // a byte of the answer was sent
  bool ended = false;     // the answer is whole, but for `rest`
  bool last = false;      // the connection ends with this answer
  bool wants = false;     // JavaScript waits for room
  bool reading = false;   // JavaScript wants the body
  bool chunked = false;
  bool expects = false;   // the client waits for our word before it sends the body
  bool near = false;      // its round trip was looked at
  bool ends = false;      // the client sends no more
  bool held = false;      // nothing is read behind this answer, until `release`
  bool broken = false;    // the socket refused to be written to
  bool queued = false;    // it stands in `again_`: twice would be two requests where others get one
  uint64_t bodyLeft = 0;
  ChunkReader chunks;
  int64_t owed = -1;      // the tally of a cached answer that has not ended
  size_t owedBody = 0;    // bytes of its body
  size_t aside = 0;       // bytes of it that were put aside
  bool isPart = false;    // the socket did not take it whole at once
  Taken taken;            // tokens that it cost
  double beganSeconds = 0;  // of a monotonic clock, when its request was read
  uint64_t who = 0;       // the address of the client, as far as it counts for shares
  Ip ip;                  // all of it
  Client client;          // whose bucket that is, once it was looked up
  double heard = 0;       // when it last sent a byte
  double since = 0;       // when the present wait began
  double lingers = 0;     // when its sending side was ended
  std::string in;         // read and not used yet
  std::string rest;       // what the socket did not take
  BodyLeft body;          // what is to be sent behind it
  std::unique_ptr<TlsSession> tls;  // null: plain HTTP
  int waiting = 0;        // bytes that its client had not taken at the last look

  // It waits for its client: nothing of ours is lost with it.
  bool waits() const { return phase != Phase::kAnswering || (reading && !begun); }
  // The socket takes no more of what is ready for it.
  bool isFull() const { return !rest.empty() || body.length > 0; }
  bool unread() const { return chunked ? !chunks.whole : bodyLeft > 0; }
};

}  // namespace server
