// Connections: made, kept, read from, given back. See client.h.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "client.h"

namespace client {

namespace {

// A connection without a request is kept for so long, where the server names no shorter time: a handshake of TLS costs as much as
// ten small contents. Less than the minute or more after which servers usually close it.
constexpr double kIdleMs = 50 * 1000;
// A server closes a connection so long after its answer was sent; a request that is sent shortly before would be lost.
constexpr double kBeforeCloseMs = 1000;
// Sealed bytes that wait for a socket; there are more only where a server has us answer and does not read.
constexpr size_t kOutMax = 256 * 1024;
// Reads of one connection before others have their turn.
constexpr int kReadsMax = 4;
// An address that does not answer for so long gives way to the next one, as in Node (`autoSelectFamily`); the last one has the
// time that the request has.
constexpr unsigned long long kAttemptMs = 250;

// Whatever is read and then put elsewhere; one for the thread.
thread_local char scratch[kReadMax];
// What is unsealed, where it does not go to where JavaScript sees it.
thread_local char unsealed[kSealedMax + kRecordMax];

}  // namespace

double nowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<double>(now.tv_sec) * 1000 + static_cast<double>(now.tv_nsec) / 1e6;
}

double exactMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1000 + static_cast<double>(now.tv_nsec) / 1e6;
}

bool Client::addAddress(size_t origin, const std::string& ip, int port) {
  Address address{};
  sockaddr_in* four = reinterpret_cast<sockaddr_in*>(&address.at);
  sockaddr_in6* six = reinterpret_cast<sockaddr_in6*>(&address.at);
  if (inet_pton(AF_INET, ip.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*four);
  } else if (inet_pton(AF_INET6, ip.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof(*six);
  } else {
    return false;
  }
  origins_[origin].addresses.push_back(address);
  return true;
}

void Client::start(Request* request) {
  Origin& origin = origins_[request->origin];
  // Others wait already, for a connection or for the next turn.
  if (!request->isAgain && !origin.isStarting && !origin.waiting.empty()) {
    origin.waiting.push_back(request->id);
    return startNext(request->origin);
  }
  Connection* kept = request->isAgain ? nullptr : idleOf(origin);
  if (kept != nullptr) {
    kept->request = request;
    kept->isReused = true;
    request->connection = kept;
    uv_ref(kept->poll);
    return send(kept);
  }
  if (origin.open >= origin.connectionsMax && !origin.idle.empty()) close(origin.idle.front());
  if (origin.open >= origin.connectionsMax || !(request->isAgain || mayConnect(origin))) {
    origin.waiting.push_back(request->id);
    if (origin.open < origin.connectionsMax) startLater();
    return;
  }
  double now = exactMs();
  if (now - origin.shakesSince >= kShakesMs) {
    origin.shakes = 0;
    origin.shakesSince = now;
  }
  origin.shakes += 1;
  auto made = std::make_unique<Connection>();
  Connection* c = made.get();
  c->client = this;
  c->origin = request->origin;
  c->fd = -1;
  c->poll = nullptr;
  c->request = request;
  c->first = origin.first;
  request->connection = c;
  origin.open += 1;
  connections_.emplace(c, std::move(made));
  connect(c);
}

void Client::startNext(size_t index) {
  // A request that breaks at once makes room for the next one: by one loop, because there may be thousands, and each of them
  // comes back here (`broken`).
  if (origins_[index].isStarting) return;
  origins_[index].isStarting = true;
  while (!loop_.isOver() && !origins_[index].waiting.empty()) {
    Origin& origin = origins_[index];
    if (origin.idle.empty() && origin.open >= origin.connectionsMax) break;
    if (origin.idle.empty() && !mayConnect(origin)) {
      startLater();
      break;
    }
    uint32_t id = origin.waiting.front();
    origin.waiting.pop_front();
    auto found = requests_.find(id);
    if (found != requests_.end()) start(found->second.get());
  }
  origins_[index].isStarting = false;
}

// Whether one more connection may begin now; one that has no other always may.
bool Client::mayConnect(const Origin& origin) const {
  if (origin.resumable == nullptr || origin.open == 0 || origin.shakes < kShakesMax) return true;
  return exactMs() - origin.shakesSince >= kShakesMs;
}

void Client::startLater() {
  if (isLater_ || loop_.isOver()) return;
  isLater_ = true;
  auto act = [](uv_timer_t* handle) {
    Client* client = static_cast<Client*>(handle->data);
    client->isLater_ = false;
    for (size_t at = 0; at < client->origins_.size(); at += 1) client->startNext(at);
  };
  uv_timer_start(later_, act, 1, 0);
}

void Client::sweepLater() {
  if (isSweeping_ || loop_.isOver()) return;
  isSweeping_ = true;
  uv_timer_start(sweep_, [](uv_timer_t* handle) { static_cast<Client*>(handle->data)->sweep(); }, kSweepMs, 0);
}

// Closes idle connections whose time is over: servers may keep their side for ever.
void Client::sweep() {
  isSweeping_ = false;
  double now = nowMs();
  bool isAnyIdle = false;
  for (Origin& origin : origins_) {
    for (size_t at = origin.idle.size(); at > 0; at -= 1) {
      if (origin.idle[at - 1]->idleUntil < now) close(origin.idle[at - 1]);
    }
    isAnyIdle = isAnyIdle || !origin.idle.empty();
  }
  if (isAnyIdle) sweepLater();
}

// The kept connection that was used last; those that are too old are closed, and those on which something came since: the loop
// may not have looked yet, and it must not become the answer to the next request.
Connection* Client::idleOf(Origin& origin) {
  double now = nowMs();
  while (!origin.idle.empty() && origin.idle.front()->idleUntil < now) close(origin.idle.front());
  while (!origin.idle.empty()) {
    Connection* c = origin.idle.back();
    if (c->idleUntil < now || !isQuiet(c)) {
      close(c);
      continue;
    }
    origin.idle.pop_back();
    return c;
  }
  return nullptr;
}

// Whether nothing came on an idle connection. TLS has words of its own, like tickets, which are no answer.
bool Client::isQuiet(Connection* c) {
  ssize_t count = recv(c->fd, scratch, c->tls == nullptr ? 1 : kSealedMax, (c->tls == nullptr ? MSG_PEEK : 0) | MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0 || c->tls == nullptr) return false;
  size_t plain = c->tls->take(scratch, static_cast<size_t>(count), unsealed, sizeof(unsealed));
  return plain == 0 && !c->tls->failed && !c->tls->ends && static_cast<size_t>(count) < kSealedMax;
}

// Tries the addresses in order, from the present one.
void Client::connect(Connection* c) {
  Origin& origin = origins_[c->origin];
  int code = EHOSTUNREACH;
  for (; c->address < origin.addresses.size(); c->address += 1) {
    const Address& address = origin.addresses[(c->first + c->address) % origin.addresses.size()];
    const sockaddr* at = reinterpret_cast<const sockaddr*>(&address.at);
    c->fd = socket(at->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
      code = errno;
      continue;
    }
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    bool isBegun = ::connect(c->fd, at, address.size) == 0 || errno == EINPROGRESS;
    code = errno;
    if (isBegun) {
      c->poll = loop_.watch(c->fd);
      // The kernel watches no more sockets.
      code = ENOSPC;
    }
    if (c->poll != nullptr) {
      c->poll->data = c;
      c->phase = Phase::kConnecting;
      if (c->address + 1 < origin.addresses.size()) limit(c);
      return arm(c, UV_WRITABLE);
    }
    letGo(c);
  }
  broken(c, code);
}

void Client::connected(Connection* c) {
  int code = 0;
  socklen_t size = sizeof(code);
  getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &code, &size);
  if (code != 0) return nextAddress(c, code);
  endTimer(c);
  // The next connection tries first what led somewhere.
  Origin& origin = origins_[c->origin];
  if (c->address > 0 && !origin.addresses.empty()) origin.first = (c->first + c->address) % origin.addresses.size();
  if (origin.resumable == nullptr) return send(c);
  c->phase = Phase::kShaking;
  c->tls = std::make_unique<Secure>(trust(), origin.resumable.get(), origin.host, origin.isAddress);
  c->tls->begin();
  shake(c);
}

// Goes on with a handshake.
void Client::shake(Connection* c) {
  if (c->tls->failed) {
    std::string reason = c->tls->reason;
    // The alert that says why; whether it arrives does not matter.
    const std::string& out = c->tls->out;
    if (!out.empty() && ::send(c->fd, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) errno = 0;
    return broken(c, -kTls, std::move(reason));
  }
  if (c->tls->isUp) return send(c);
  flush(c);
}

// Sends what is sealed, as far as the socket takes it.
bool Client::flush(Connection* c) {
  std::string& out = c->tls->out;
  size_t sent = 0;
  while (sent < out.size()) {
    ssize_t count = ::send(c->fd, out.data() + sent, out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) sent += static_cast<size_t>(count);
    else if (errno == EAGAIN) break;
    else if (errno != EINTR) return sawEnd(c, errno), false;
  }
  out.erase(0, sent);
  if (out.size() > kOutMax) return sawEnd(c, ECONNRESET), false;
  if (c->phase == Phase::kSending && out.empty()) c->phase = Phase::kReading;
  bool isPaused = c->request != nullptr && c->request->isPaused && c->phase == Phase::kBody;
  arm(c, (isPaused ? 0 : UV_READABLE) | (out.empty() ? 0 : UV_WRITABLE));
  return true;
}

void Client::nextAddress(Connection* c, int code) {
  letGo(c);
  c->address += 1;
  if (c->address < origins_[c->origin].addresses.size()) return connect(c);
  broken(c, code);
}

// From now on an attempt has so long.
void Client::limit(Connection* c) {
  c->timer = loop_.timer(c);
  auto late = [](uv_timer_t* handle) {
    Connection* c = static_cast<Connection*>(handle->data);
    c->client->nextAddress(c, ETIMEDOUT);
  };
  uv_timer_start(c->timer, late, kAttemptMs, 0);
}

void Client::endTimer(Connection* c) {
  if (c->timer == nullptr) return;
  uv_timer_stop(c->timer);
  loop_.end(c->timer);
  c->timer = nullptr;
}

void Client::send(Connection* c) {
  c->phase = Phase::kSending;
  const std::string& text = c->request->text;
  if (c->tls != nullptr) {
    c->tls->seal(text.data(), text.size());
    if (c->tls->failed) return sawEnd(c, ECONNRESET);
    flush(c);
    return;
  }
  while (c->sent < text.size()) {
    ssize_t count = ::send(c->fd, text.data() + c->sent, text.size() - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      c->sent += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return arm(c, UV_READABLE | UV_WRITABLE);
    return sawEnd(c, errno);
  }
  c->phase = Phase::kReading;
  arm(c, UV_READABLE);
}

void Client::arm(Connection* c, int events) {
  if (c->events == events) return;
  c->events = events;
  if (events == 0) {
    uv_poll_stop(c->poll);
    return;
  }
  uv_poll_start(c->poll, events, [](uv_poll_t* handle, int status, int found) {
    Connection* c = static_cast<Connection*>(handle->data);
    c->client->ready(c, status, found);
  });
}

void Client::ready(Connection* c, int status, int events) {
  if (c->phase == Phase::kConnecting) return connected(c);
  if (status < 0) {
    // It was reset, and libuv no longer watches it. What came before can still be read, and behind it is the error.
    c->events = 0;
    char any;
    ssize_t count = recv(c->fd, &any, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count <= 0) return sawEnd(c, count < 0 && errno != EAGAIN ? errno : ECONNRESET);
    arm(c, UV_READABLE);
    return readable(c);
  }
  if (c->tls != nullptr) {
    if ((events & UV_WRITABLE) != 0 && !flush(c)) return;
    if ((events & UV_READABLE) != 0) readSealed(c);
    return;
  }
  if (c->phase == Phase::kSending && (events & UV_WRITABLE) != 0) return send(c);
  if ((events & UV_READABLE) != 0) readable(c);
}

// The same as `readable`, for what is sealed.
void Client::readSealed(Connection* c) {
  uint32_t id = c->request == nullptr ? 0 : c->request->id;
  size_t before = c->in.size();
  for (int turn = 0; turn < kReadsMax; turn += 1) {
    bool direct = c->phase == Phase::kBody && !c->collects && c->chunks == nullptr;
    if (direct) {
      makeRoom(kHeadNumbers, sizeof(unsealed));
      if (!isMine(c, id) || (c->events & UV_READABLE) == 0) return;
    }
    char* to = direct ? reinterpret_cast<char*>(shared_.bytes) + bytesAt_ : unsealed;
    ssize_t count = recv(c->fd, scratch, kSealedMax, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return sawEnd(c, count == 0 ? 0 : errno);
    bool wasUp = c->tls->isUp;
    size_t plain = c->tls->take(scratch, static_cast<size_t>(count), to, sizeof(unsealed));
    if (!wasUp && c->request != nullptr) {
      shake(c);
      if (!isMine(c, id)) return;
      if (!c->tls->isUp) continue;
    }
    if (c->request == nullptr) {
      if (plain > 0 || c->tls->failed || c->tls->ends) return close(c);
      if (!c->tls->out.empty() && !flush(c)) return;
      continue;
    }
    if (plain > 0) {
      if (c->phase == Phase::kSending) {
        // It answers before it has heard all: the connection is not used again.
        c->phase = Phase::kReading;
        c->isCut = true;
      }
      if (!took(c, to, plain, direct)) return;
    }
    if (c->tls->failed || c->tls->ends) return sawEnd(c, c->tls->failed ? ECONNRESET : 0);
    if (!c->tls->out.empty() && !flush(c)) return;
    if (static_cast<size_t>(count) < kSealedMax) break;
  }
  reportCollected(c, id, before);
}

void Client::readable(Connection* c) {
  uint32_t id = c->request == nullptr ? 0 : c->request->id;
  size_t before = c->in.size();
  for (int turn = 0; turn < kReadsMax; turn += 1) {
    // The bytes of a large body are read to where JavaScript sees them.
    bool direct = c->phase == Phase::kBody && !c->collects && c->chunks == nullptr;
    size_t most = kReadMax;
    if (direct && !c->head.untilEnd && c->left < most) most = static_cast<size_t>(c->left);
    if (direct) {
      makeRoom(kHeadNumbers, most);
      // JavaScript heard of what came before, and may have let go of it or want a pause.
      if (!isMine(c, id) || c->events == 0) return;
    }
    char* to = direct ? reinterpret_cast<char*>(shared_.bytes) + bytesAt_ : scratch;
    ssize_t count = recv(c->fd, to, most, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) return sawEnd(c, count == 0 ? 0 : errno);
    // No request waits for it: whatever it is, it must not become somebody's answer.
    if (c->request == nullptr) return close(c);
    if (c->phase == Phase::kSending) {
      // It answers before it has heard all: the rest is not sent.
      c->phase = Phase::kReading;
      c->isCut = true;
      arm(c, UV_READABLE);
    }
    if (!took(c, to, static_cast<size_t>(count), direct)) return;
    if (static_cast<size_t>(count) < most) break;
  }
  reportCollected(c, id, before);
}

void Client::reportCollected(Connection* c, uint32_t id, size_t before) {
  if (c->request == nullptr || c->request->id != id || !c->collects) return;
  // It takes longer than one turn: how fast it comes is JavaScript's to judge.
  if (c->hasHead) {
    if (c->in.size() > before) reportCame(id, c->in.size() - before);
    return;
  }
  c->hasHead = true;
  reportHead(c, c->headText, nullptr);
}

bool Client::took(Connection* c, const char* bytes, size_t length, bool isShared) {
  if (c->phase == Phase::kBody) return takeBody(c, bytes, length, isShared);
  size_t from = c->in.size() < 3 ? 0 : c->in.size() - 3;
  c->in.append(bytes, length);
  // Read once, when it is whole.
  bool ends = c->in.find("\r\n\r\n", from) != std::string::npos;
  return !ends && c->in.size() < kHeadMax ? true : takeHeads(c);
}

bool Client::takeHeads(Connection* c) {
  for (;;) {
    AnswerReader reader(c->in.data(), c->in.size(), names_, c->request->isHead);
    if (!reader.read(&c->head)) {
      if (reader.fault == kSound) return true;
      broken(c, -reader.fault);
      return false;
    }
    if (!c->head.isInterim()) return headCame(c);
    c->interims += 1;
    c->in.erase(0, c->head.bytes);
    if (c->interims > kInterimMax) {
      broken(c, -kInterim);
      return false;
    }
  }
}

bool Client::headCame(Connection* c) {
  const Head& head = c->head;
  std::string text = c->in.substr(0, head.bytes);
  std::string rest = c->in.substr(head.bytes);
  c->in.clear();
  c->phase = Phase::kBody;
  c->left = head.length;
  bool isSized = !head.chunked && !head.untilEnd;
  if (isSized && (head.length == 0 || (head.length <= c->request->wholeMax && rest.size() >= head.length))) {
    std::string body = rest.substr(0, head.length);
    uint32_t id = c->request->id;
    reportHead(c, text, &body);
    return isMine(c, id) && over(c, c->head.keeps && rest.size() == c->head.length);
  }
  c->collects = isSized && head.length <= c->request->wholeMax;
  if (c->collects) {
    c->headText = std::move(text);
    c->in = std::move(rest);
    // As much as a usual piece of the socket, so that small bodies are not moved while they grow.
    c->in.reserve(std::min<size_t>(head.length, kSealedMax));
    return true;
  }
  uint32_t id = c->request->id;
  reportHead(c, text, nullptr);
  if (!isMine(c, id)) return false;
  c->hasHead = true;
  if (c->head.chunked) c->chunks = std::make_unique<ChunkReader>();
  return rest.empty() || takeBody(c, rest.data(), rest.size(), false);
}

bool Client::takeBody(Connection* c, const char* bytes, size_t length, bool isShared) {
  uint32_t id = c->request->id;
  if (c->collects) {
    c->in.append(bytes, length);
    if (c->in.size() < c->left) return true;
    bool isClean = c->in.size() == c->left;
    // JavaScript may let go of the connection while it hears of it.
    std::string body = std::move(c->in);
    body.resize(c->left);
    if (c->hasHead) reportData(id, body.data(), body.size(), true, false);
    else reportHead(c, c->headText, &body);
    return isMine(c, id) && over(c, c->head.keeps && isClean);
  }
  if (c->chunks != nullptr) return takeChunks(c, bytes, length);
  if (c->head.untilEnd) {
    reportData(id, bytes, length, false, isShared);
    return isMine(c, id);
  }
  size_t have = length < c->left ? length : static_cast<size_t>(c->left);
  c->left -= have;
  reportData(id, bytes, have, c->left == 0, isShared);
  if (!isMine(c, id)) return false;
  return c->left > 0 || over(c, c->head.keeps && have == length);
}

bool Client::takeChunks(Connection* c, const char* bytes, size_t length) {
  uint32_t id = c->request->id;
  const uint8_t* from = reinterpret_cast<const uint8_t*>(bytes);
  for (size_t at = 0; at < length && !c->chunks->whole;) {
    Span piece{nullptr, 0};
    at += c->chunks->take(from + at, length - at, &piece);
    if (c->chunks->failed) {
      broken(c, -kChunk);
      return false;
    }
    if (piece.length > 0) reportData(id, reinterpret_cast<const char*>(piece.start), piece.length, false, false);
    if (!isMine(c, id)) return false;
    if (c->chunks->whole) {
      reportEnd(id);
      return isMine(c, id) && over(c, c->head.keeps && at == length);
    }
  }
  return true;
}

// Whether this connection still brings the answer to this request: JavaScript may have let go of it when it heard of it.
bool Client::isMine(Connection* c, uint32_t id) const {
  return connections_.count(c) > 0 && c->request != nullptr && c->request->id == id;
}

void Client::sawEnd(Connection* c, int code) {
  if (c->request == nullptr) return close(c);
  // Over TLS whoever ends the body says so: anybody on the way can end the connection below it.
  bool isStated = c->tls == nullptr || c->tls->ends;
  if (code == 0 && isStated && c->phase == Phase::kBody && c->head.untilEnd) {
    uint32_t id = c->request->id;
    reportEnd(id);
    if (isMine(c, id)) over(c, false);
    return;
  }
  bool isSilent = c->phase != Phase::kBody && c->in.empty() && c->interims == 0;
  if (!c->isReused || !isSilent) return broken(c, code == 0 ? -kEarlyEnd : code);
  // It was closed while no request waited: that is no answer.
  Request* request = c->request;
  size_t origin = c->origin;
  c->request = nullptr;
  request->connection = nullptr;
  request->isAgain = true;
  close(c);
  start(request);
  startNext(origin);
}

// The answer is over. False, for those who have to stop reading.
bool Client::over(Connection* c, bool keeps) {
  size_t origin = c->origin;
  forget(c->request);
  c->request = nullptr;
  if (!keeps || c->isCut || (c->tls != nullptr && (c->tls->ends || c->tls->failed))) close(c);
  else {
    c->phase = Phase::kIdle;
    c->sent = 0;
    c->interims = 0;
    c->hasHead = c->collects = false;
    c->in.clear();
    c->headText.clear();
    c->chunks.reset();
    double keepsMs = c->head.keepSeconds < 0 ? kIdleMs : std::min(kIdleMs, c->head.keepSeconds * 1000.0 - kBeforeCloseMs);
    c->idleUntil = nowMs() + keepsMs;
    origins_[origin].idle.push_back(c);
    sweepLater();
    arm(c, UV_READABLE);
    uv_unref(c->poll);
  }
  startNext(origin);
  return false;
}

void Client::broken(Connection* c, int code, std::string reason) {
  size_t origin = c->origin;
  uint32_t id = c->request->id;
  forget(c->request);
  c->request = nullptr;
  close(c);
  reportBroken(id, code, std::move(reason));
  startNext(origin);
}

void Client::letGo(Connection* c) {
  endTimer(c);
  if (c->poll != nullptr) {
    uv_poll_stop(c->poll);
    loop_.end(c->poll);
    c->poll = nullptr;
  }
  c->events = 0;
  if (c->fd >= 0) ::close(c->fd);
  c->fd = -1;
}

void Client::close(Connection* c) {
  if (c->tls != nullptr && c->fd >= 0 && c->phase == Phase::kIdle) {
    c->tls->close();
    const std::string& out = c->tls->out;
    if (::send(c->fd, out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) errno = 0;
  }
  Origin& origin = origins_[c->origin];
  auto found = std::find(origin.idle.begin(), origin.idle.end(), c);
  if (found != origin.idle.end()) origin.idle.erase(found);
  letGo(c);
  origin.open -= 1;
  connections_.erase(c);
}

}  // namespace client
