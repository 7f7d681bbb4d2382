// Requests to other servers (GET and HEAD over HTTP/1.1, with and without TLS) on the event loop of one thread, over kept
// connections. What happened in a turn goes to JavaScript in one call (the inbox): see client.ts for the words.
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../loop-bridge.h"
#include "answer.h"
#include "secure.h"

extern "C" void uv_ref(uv_handle_t* handle);

namespace client {

// What the first number of a message says; the second is the request.
// kHead status, flags, start and end of the head's text, start and length of the body, number of lines, then of each line: number of
//   its name, start and end of its value within the text
// kData start, length, 1 where it is the last | kCame bytes of a body that will be reported as a whole | kEnd
// kBroken code, start and length of a text that says more
enum Kind { kHead = 1, kData = 2, kCame = 3, kEnd = 4, kBroken = 5 };
// Flags of kHead: the body follows in this very message, and is all of it; a kept connection was used.
enum Flag { kWhole = 1, kReused = 2 };
constexpr size_t kHeadNumbers = 9;
constexpr size_t kInboxMin = 64 * 1024;
constexpr size_t kReadMax = 256 * 1024;
// Of what is sealed, so that it is unsealed within the processor's cache; and what one record makes of it at most.
constexpr size_t kSealedMax = 64 * 1024;
constexpr size_t kRecordMax = 16 * 1024;
constexpr size_t kReasonMax = 512;
// Handshakes of TLS that are begun with one origin within a millisecond. Where more requests wait, a connection that becomes free
// may serve them first: a handshake costs as much as ten small contents, and delays those that are under way.
constexpr size_t kShakesMax = 2;
constexpr double kShakesMs = 1;
// While connections are idle, those whose time is over are closed so often.
constexpr unsigned long long kSweepMs = 5000;
constexpr size_t kWholeMax = 1024 * 1024;
constexpr size_t kBytesMin = 2 * (kWholeMax + kHeadMax);

struct Shared {
  int32_t* inbox;
  size_t inboxLength;
  uint8_t* bytes;
  size_t bytesLength;
};

struct Address {
  sockaddr_storage at;
  socklen_t size;
};

struct Connection;

struct Request {
  uint32_t id;
  size_t origin;
  std::string text;
  bool isHead;
  // A body of no more bytes is reported as a whole.
  uint64_t wholeMax;
  bool isPaused = false;
  // It was sent on a kept connection that had been closed: now on a new one.
  bool isAgain = false;
  Connection* connection = nullptr;
};

enum class Phase { kConnecting, kShaking, kIdle, kSending, kReading, kBody };

struct Connection {
  class Client* client;
  size_t origin;
  int fd;
  uv_poll_t* poll;
  uv_timer_t* timer = nullptr;  // of an attempt to connect, where there is another address
  int events = 0;
  Phase phase = Phase::kConnecting;
  Request* request = nullptr;
  bool isReused = false;
  bool isCut = false;    // the answer came before the request was sent as a whole
  size_t first = 0;      // of the origin's addresses, the one that it tries first
  size_t address = 0;    // how many it has tried in vain
  size_t sent = 0;
  double idleUntil = 0;
  std::unique_ptr<Secure> tls;
  std::string in;        // of a head that is not whole, then of a body that is reported as a whole
  bool hasHead = false;  // it was reported
  int interims = 0;
  Head head;
  uint64_t left = 0;     // of a body of known length
  bool collects = false;
  std::string headText;  // of a head that waits for its body
  std::unique_ptr<ChunkReader> chunks;
};

// What broke, for the next turn.
struct Breakage {
  uint32_t id;
  int code;
  std::string reason;
};

struct Origin {
  std::vector<Address> addresses;
  size_t connectionsMax;
  // TLS is spoken with it: the name in its certificate, which may be an address, and sessions to go on with.
  std::string host;
  bool isAddress = false;
  std::unique_ptr<Resumable> resumable;
  size_t open = 0;
  bool isStarting = false;
  size_t shakes = 0;  // handshakes begun since `shakesSince`
  double shakesSince = 0;
  size_t first = 0;  // the address that led somewhere last
  std::vector<Connection*> idle;  // the last one was used last
  std::deque<uint32_t> waiting;
};

class Client {
 public:
  Client(uv_loop_t* loop, Shared shared, Names names, std::function<void(size_t)> hear);

  size_t origins() const { return origins_.size(); }
  size_t addOrigin(size_t connectionsMax);
  // TLS is spoken with this origin. False: this OpenSSL cannot.
  bool secure(size_t origin, const std::string& host, bool isAddress);
  // What certificates are checked against; null where there is no OpenSSL to be had.
  Trust* trust();
  // False: it is no address.
  bool addAddress(size_t origin, const std::string& ip, int port);
  void dropAddresses(size_t origin) {
    origins_[origin].addresses.clear();
    origins_[origin].first = 0;
  }

  uint32_t begin(size_t origin, std::string text, bool isHead, uint64_t wholeMax);
  // The three do nothing where the request is over.
  void pause(uint32_t id);
  void resume(uint32_t id);
  // Ends a request without a message.
  void drop(uint32_t id);
  // Ends everything. `over` is called when nothing of this client is left in the loop.
  void destroy(std::function<void()> over);

 private:
  loop_bridge::Loop loop_;
  Shared shared_;
  Names names_;
  std::function<void(size_t)> hear_;
  uv_timer_t* later_;  // for requests that wait for the next turn
  bool isLater_ = false;
  uv_timer_t* sweep_;  // for connections that nobody uses again
  bool isSweeping_ = false;
  size_t inboxAt_ = 0, bytesAt_ = 0;
  bool delivering_ = false;
  uint32_t lastId_ = 0;
  std::vector<Origin> origins_;
  std::unordered_map<uint32_t, std::unique_ptr<Request>> requests_;
  std::unique_ptr<Trust> trust_;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections_;
  // Broken while JavaScript reads the inbox: reported in the next turn.
  std::vector<Breakage> brokenNext_;

  void handOver();
  // The messages of this turn are reported now where there is no room for so many numbers and bytes more.
  void makeRoom(size_t numbers, size_t bytes);
  void number(int64_t value) { shared_.inbox[inboxAt_++] = static_cast<int32_t>(value); }
  // Where in the shared bytes these stand from now on.
  size_t place(const char* bytes, size_t length);
  void reportHead(Connection* c, const std::string& text, const std::string* body);
  void reportData(uint32_t id, const char* bytes, size_t length, bool isLast, bool isShared);
  void reportCame(uint32_t id, size_t bytes);
  void reportEnd(uint32_t id);
  void reportBroken(uint32_t id, int code, std::string reason);
  void forget(Request* request);

  void start(Request* request);
  void startNext(size_t origin);
  bool mayConnect(const Origin& origin) const;
  void startLater();
  void sweepLater();
  void sweep();
  Connection* idleOf(Origin& origin);
  void connect(Connection* c);
  void connected(Connection* c);
  void nextAddress(Connection* c, int code);
  void limit(Connection* c);
  void endTimer(Connection* c);
  void send(Connection* c);
  void arm(Connection* c, int events);
  void ready(Connection* c, int status, int events);
  void readable(Connection* c);
  void shake(Connection* c);
  void readSealed(Connection* c);
  // False: the connection is gone.
  bool flush(Connection* c);
  bool isQuiet(Connection* c);
  void reportCollected(Connection* c, uint32_t id, size_t before);
  // Those below that say so are false where nothing more may be read here: the answer is over, or the connection gone.
  bool took(Connection* c, const char* bytes, size_t length, bool isShared);
  bool takeHeads(Connection* c);
  bool headCame(Connection* c);
  bool takeBody(Connection* c, const char* bytes, size_t length, bool isShared);
  bool takeChunks(Connection* c, const char* bytes, size_t length);
  bool isMine(Connection* c, uint32_t id) const;
  void sawEnd(Connection* c, int code);
  bool over(Connection* c, bool keeps);
  void broken(Connection* c, int code, std::string reason = "");
  void letGo(Connection* c);
  void close(Connection* c);
};

double nowMs();
// To the microsecond, for what is shorter than the coarse clock's step.
double exactMs();

}  // namespace client
