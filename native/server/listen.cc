// The listening socket, the turns of the loop, and closing. See server.h.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "crowd.h"
#include "server.h"
#include "sockets.h"

namespace server {

namespace {

constexpr int kBacklog = 4096;
// Taken from the queue of new connections in one turn.
constexpr int kAcceptMax = 256;
// Requests that are handed over in one call: the first of them waits for the others.
constexpr size_t kTurnMax = 64;
// Pipelined requests are handled for so many rounds before the rest of the program gets a turn; fewer where many connections
// have some, because others wait meanwhile.
constexpr int kRoundsMax = 16;
// Where there are many connections, idle ones are closed after this time, and the head of a request has to be there.
constexpr double kCrowdedMs = 2000;
// Where there is no room or no descriptor for one more connection, this is how often it is tried again; clients wait in the
// kernel's queue meanwhile, which somebody may fill as well.
constexpr unsigned kRetryMs = 5;

// So many connections at once make room for others, as a part of all: finding them costs a look at each.
constexpr size_t kCrowdParts = 64;

// An ended connection is read for so many times `lingerMs` at most, however steadily its client goes on sending; once where there are
// many connections.
constexpr double kLingerParts = 10;

struct Address {
  union {
    sockaddr any;
    sockaddr_in four;
    sockaddr_in6 six;
  };
  socklen_t size = sizeof(sockaddr_in6);
  Address() { memset(&six, 0, sizeof(six)); }
  bool read(const std::string& host, int port) {
    if (inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1) {
      four.sin_family = AF_INET;
      four.sin_port = htons(static_cast<uint16_t>(port));
      size = sizeof(four);
      return true;
    }
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(static_cast<uint16_t>(port));
    return inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
  }
  // One client: an IPv4 address, or the first 64 bits of an IPv6 address, since a subscriber gets as many or more.
  uint64_t who() const {
    uint64_t high = 0;
    uint32_t low = 0;
    bool mapped = any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
    if (any.sa_family == AF_INET) memcpy(&low, &four.sin_addr, sizeof(low));
    else if (mapped) memcpy(&low, six.sin6_addr.s6_addr + 12, sizeof(low));
    else memcpy(&high, six.sin6_addr.s6_addr, sizeof(high));
    return high != 0 ? high : low;
  }
  Ip ip() const {
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(&four.sin_addr);
    return any.sa_family == AF_INET ? Ip::ofFour(bytes) : Ip::of(six.sin6_addr.s6_addr);
  }
};

}  // namespace

Server::Server(uv_loop_t* loop, Shared shared, Limits limits, std::function<void(size_t)> hear)
    : loop_(loop, [this] { handOver(); }), shared_(shared), limits_(limits), hear_(std::move(hear)), retry_(loop_.timer(this)) {
  uv_unref(retry_);
}

int Server::listen(const std::string& host, int wanted) {
  Address address;
  if (!address.read(host, wanted)) return EINVAL;
  listenFd_ = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listenFd_ < 0) return errno;
  int one = 1;
  setsockopt(listenFd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  // Threads that listen on one port share it; the kernel spreads connections over them.
  setsockopt(listenFd_, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
  // Accepted sockets inherit this.
  setsockopt(listenFd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (bind(listenFd_, &address.any, address.size) != 0 || ::listen(listenFd_, kBacklog) != 0 ||
      getsockname(listenFd_, &address.any, &address.size) != 0) {
    int code = errno;
    ::close(listenFd_);
    listenFd_ = -1;
    return code;
  }
  port = ntohs(address.any.sa_family == AF_INET ? address.four.sin_port : address.six.sin6_port);
  listener_ = loop_.watch(listenFd_);
  if (listener_ == nullptr) {
    ::close(listenFd_);
    listenFd_ = -1;
    return ENOSPC;
  }
  listener_->data = this;
  resume();
  return 0;
}

void Server::resume() {
  if (accepting_ || listener_ == nullptr || open_ >= limits_.connectionsMax || sockets.full()) return;
  accepting_ = true;
  uv_timer_stop(retry_);
  uv_poll_start(listener_, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<Server*>(handle->data)->accept(); });
}

void Server::accept() {
  for (int count = 0; count < kAcceptMax; count += 1) {
    if (open_ < limits_.connectionsMax && sockets.claim()) {
      Address client;
      int fd = accept4(listenFd_, &client.any, &client.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        add(fd, client.who(), client.ip());
        continue;
      }
      int code = errno;
      sockets.release();
      if (code == EAGAIN) return;
      if (code == ECONNABORTED || code == EINTR) continue;
    }
    // No room or no descriptor for one more.
    accepting_ = false;
    sockets.pauses += 1;
    uv_poll_stop(listener_);
    uv_timer_start(
        retry_, [](uv_timer_t* handle) { static_cast<Server*>(handle->data)->retry(); }, kRetryMs, kRetryMs);
    return;
  }
}

// Looks whether there is room again; where there is none and somebody waits, it is made.
void Server::retry() {
  resume();
  pollfd waiting = {listenFd_, POLLIN, 0};
  if (accepting_ || listener_ == nullptr || poll(&waiting, 1, 0) != 1) return;
  crowdOut();
  resume();
}

// Ends connections that only wait for their clients (`turnOf`): of whoever has more than a share, as many as it has beyond that, then
// of all. One person could otherwise keep all others out with nothing but open connections, each address, network or provider having
// few of them. Behind a proxy all are one client: there it is what is idle that goes.
void Server::crowdOut() {
  auto open = [this] {
    std::vector<Connection*> found;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(found), [](const Connection* c) { return c != nullptr; });
    return found;
  };
  size_t all = std::min(limits_.connectionsMax, sockets.max.load());
  size_t wanted = 1 + all / kCrowdParts;
  uint64_t newest = accepted_ - std::min<uint64_t>(accepted_, all / kNewestParts);
  Hog hog = hogOf(open(), all);
  for (Connection* c : firstOf(std::move(hog.has), std::min(wanted, hog.beyond), now_, newest)) {
    gone(c);
    wanted -= 1;
  }
  for (Connection* c : firstOf(open(), wanted, now_, newest)) gone(c);
  if (inboxAt_ > 0) loop_.wake();
}

void Server::add(int fd, uint64_t who, const Ip& ip) {
  uv_poll_t* poll = loop_.watch(fd);
  if (poll == nullptr) {
    ::close(fd);
    sockets.release();
    return;
  }
  size_t slot = slots_.size();
  if (free_.empty()) slots_.push_back(nullptr);
  else {
    slot = free_.back();
    free_.pop_back();
  }
  Connection* c = new Connection{};
  c->server = this;
  c->fd = fd;
  c->slot = slot;
  c->who = who;
  c->ip = ip;
  c->heard = c->since = now_;
  c->number = ++accepted_;
  c->poll = poll;
  c->poll->data = c;
  slots_[slot] = c;
  open_ += 1;
  if (tls_ != nullptr) secure(c);
  arm(c, UV_READABLE);
}

// Every kind of message that needs no more than this fits, however many connections have one to report.
bool Server::hasRoom() const {
  return requests_ < kTurnMax && inboxAt_ + inboxReserve(limits_.connectionsMax) <= shared_.inboxLength &&
         bytesAt_ + kBytesMin <= shared_.bytesLength;
}

void Server::pushEvent(int32_t kind, const Connection* c, size_t start, size_t length, bool last) {
  // The inbox has room for one message of every connection in each turn. More is a bug that would write over foreign memory.
  if (inboxAt_ + kShortMessage > shared_.inboxLength) abort();
  int32_t* out = shared_.inbox + inboxAt_;
  out[0] = kind;
  out[1] = static_cast<int32_t>(c->slot);
  out[2] = static_cast<int32_t>(start);
  out[3] = static_cast<int32_t>(length);
  out[4] = last ? 1 : 0;
  inboxAt_ += kShortMessage;
}

// Bytes of this connection are here already: no event will announce them.
void Server::later(size_t slot) {
  if (std::exchange(slots_[slot]->queued, true)) return;
  again_.push_back(slot);
  if (!delivering_) loop_.wake();
}

void Server::handOver() {
  if (delivering_ || loop_.isOver()) return;
  loop_.stopWaking();
  size_t taken = 0;
  for (int round = 0; round < kRoundsMax; round += 1) {
    if (cacheState_ != nullptr) cacheState_->answered = 0;
    std::vector<size_t> now;
    now.swap(again_);
    for (size_t slot : now) {
      if (slots_[slot] == nullptr) continue;
      slots_[slot]->queued = false;
      takeUp(slot);
    }
    if (inboxAt_ > 0) {
      delivering_ = true;
      hear_(inboxAt_);
      flush();
      delivering_ = false;
    }
    size_t answered = cacheState_ == nullptr ? 0 : cacheState_->answered;
    taken += requests_ + answered;
    bool over = (inboxAt_ == 0 && answered == 0) || taken >= kTurnMax;
    inboxAt_ = bytesAt_ = requests_ = 0;
    free_.insert(free_.end(), freedNext_.begin(), freedNext_.end());
    freedNext_.clear();
    if (over || loop_.isOver()) break;
  }
  if (tls_ != nullptr) renewShakes(taken > 0);
  if (!again_.empty()) loop_.wake();
}

void Server::takeUp(size_t slot) {
  Connection* c = slots_[slot];
  if (c == nullptr || c->in.empty() || (c->phase == Phase::kAnswering && !c->reading)) return;
  if (c->phase == Phase::kHead && c->held) return;
  if (!hasRoom()) return later(slot);
  uint8_t* bytes = shared_.bytes + bytesAt_;
  size_t length = c->in.size();
  memcpy(bytes, c->in.data(), length);
  take(c, bytes, length);
}

void Server::read(size_t slot) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c == nullptr || c->phase != Phase::kAnswering || !c->unread()) return;
  c->reading = true;
  arm(c, (c->events & UV_WRITABLE) | UV_READABLE);
  if (!c->in.empty()) return later(slot);
  if (!c->expects) return;
  c->expects = false;
  static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
  if (c->tls != nullptr) return say(c, line, sizeof(line) - 1);
  (void)!::send(c->fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
}

void Server::drop(size_t slot) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c != nullptr) remove(c);
}

std::string Server::address(size_t slot) const {
  const Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  Address found;
  if (c == nullptr || getpeername(c->fd, &found.any, &found.size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  bool mapped = found.any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&found.six.sin6_addr);
  if (found.any.sa_family == AF_INET) inet_ntop(AF_INET, &found.four.sin_addr, text, sizeof(text));
  else if (mapped) inet_ntop(AF_INET, found.six.sin6_addr.s6_addr + 12, text, sizeof(text));
  else inet_ntop(AF_INET6, &found.six.sin6_addr, text, sizeof(text));
  return text;
}

bool Server::isLate(const Connection* c, bool isCrowded) const {
  double waited = now_ - c->since;
  if (c->phase == Phase::kLingering) return waited > limits_.lingerMs || hasLingered(c, isCrowded);
  // Where JavaScript waits for room it judges, too: it knows how fast the body went so far.
  bool isOurs = c->isFull() && (c->tls == nullptr || !c->wants);
  if (c->phase == Phase::kAnswering) return (isOurs || c->ends) && waited > limits_.stallMs;
  bool isIdle = c->held || c->in.empty();
  double most = isIdle && !c->first ? limits_.idleMs : limits_.headMs;
  return waited > (isCrowded ? std::min(most, kCrowdedMs) : most);
}

// An ended connection that goes on sending is read for no longer than this.
bool Server::hasLingered(const Connection* c, bool isCrowded) const {
  return now_ - c->lingers > (isCrowded ? limits_.lingerMs : kLingerParts * limits_.lingerMs);
}

// What becomes of a connection that is late.
void Server::expire(Connection* c, bool isCrowded) {
  if (c->phase == Phase::kAnswering) {
    finishCached(c, kStalled);
    return gone(c);
  }
  if (c->phase == Phase::kHead && !c->held && !c->in.empty()) return refuse(c, faults::late);
  // A request that is under way to an idle connection meets its end, and not a reset.
  if (c->phase == Phase::kHead && !isCrowded) return linger(c);
  remove(c);
}

void Server::sweep(double now) {
  now_ = now;
  bool isCrowded = open_ * 4 > limits_.connectionsMax * 3 || sockets.crowded();
  for (size_t slot = 0; slot < slots_.size(); slot += 1) {
    Connection* c = slots_[slot];
    if (c == nullptr) continue;
    if (c->phase == Phase::kAnswering && c->isFull()) lookAt(c);
    if (c->tls != nullptr && std::exchange(c->tls->delayed, false)) arm(c, UV_READABLE);
    if (!isLate(c, isCrowded)) continue;
    bool isOver = c->phase == Phase::kLingering && hasLingered(c, isCrowded);
    bool isRead = c->phase == Phase::kAnswering ? c->isFull() : !c->held && !isOver;
    // Without room what waits is used, and judged, at the next sweep. One whose handshake has waited for so long is given up.
    if (isRead && !hasRoom()) continue;
    if (isRead && mayShake(c) && heed(c) && (slots_[slot] != c || !isLate(c, isCrowded))) continue;
    expire(c, isCrowded);
  }
  if (!closing_) resume();
  if (inboxAt_ > 0) loop_.wake();
}

void Server::shut() {
  if (closing_) return;
  closing_ = true;
  if (listener_ != nullptr) {
    // Who waits to be accepted would be reset with the socket.
    if (accepting_) accept();
    uv_poll_stop(listener_);
    ::close(listenFd_);
    loop_.end(listener_);
    listener_ = nullptr;
    uv_timer_stop(retry_);
  }
  for (size_t slot = 0; slot < slots_.size(); slot += 1) {
    Connection* c = slots_[slot];
    if (c == nullptr || c->phase != Phase::kHead) continue;
    if (!c->held && hasRoom()) heed(c);
    if (slots_[slot] == c && c->phase == Phase::kHead) remove(c);
  }
  if (inboxAt_ > 0) loop_.wake();
}

void Server::destroy(std::function<void()> over) {
  if (loop_.isOver()) return;
  shut();
  loop_.destroy(std::move(over));
  for (Connection* c : slots_) {
    if (c != nullptr) remove(c);
  }
  loop_.end(retry_);
}

}  // namespace server
