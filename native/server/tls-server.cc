// How the server receives and sends over TLS: one recv a turn, one send for what was sealed. Sealed bytes that a socket does not take
// wait in `rest` of their connection, and nothing more of its answer is sealed until they are out.
#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "../bus.h"
#include "crowd.h"
#include "server.h"

namespace server {

namespace {

// Handshakes that are begun in one turn, and in one that follows requests: those wait meanwhile, 0.3 ms for each handshake.
constexpr size_t kShakesMax = 8, kShakesBesideMax = 2;
// Where more wait than that, an address may begin so many at once, and so many a second.
constexpr size_t kRatesMax = 1024;
constexpr double kShakesBurst = 1024, kShakesPerSecond = 256, kPressedMs = 2000;
// Unfinished handshakes, as a part of all connections; where there are more, whoever has the most loses so small a part of them.
constexpr size_t kShakingParts = 4, kShakingDropParts = 64;
// Bytes of a body that are sealed at once.
constexpr size_t kShareMax = 256 * 1024;
// Sealed bytes that wait in all. Beyond it bodies are sealed record by record.
constexpr size_t kWaitingMax = 32 * 1024 * 1024;
// What a client may have us say beside answers (new keys, refusals of renegotiation) while its connection lasts: some hundred new
// keys, each of which is for gigabytes. Each costs more processor time than a record.
constexpr size_t kSentMax = 16 * 1024;

const Fault plainOnTls{400, "this port speaks TLS: the address begins with https://"};

}  // namespace

void Server::speakTls(std::unique_ptr<TlsContext> tls) {
  tls_ = std::move(tls);
  received_.resize(kReadMax);
  shakeRates_.assign(kRatesMax, {0, kShakesBurst, now_});
}

// Whether a connection may go on with its handshake now. Not: what it sent stays in the socket until its turn (`queueShake`).
bool Server::mayShake(const Connection* c) const { return c->tls == nullptr || c->tls->isUp || shakes_ < shakesMax_; }

// Takes a token of an address, where handshakes wait for their turn. False: it has begun too many, and this one has to wait. It is not
// closed: behind a balancer or a shared address the others of that address are strangers to those that flood.
bool Server::mayBegin(const Connection* c) {
  if (c->tls == nullptr || c->tls->begun || now_ - pressed_ > kPressedMs) return true;
  ShakeRate& rate = shakeRates_[(c->who * 0x9e3779b97f4a7c15u) >> 54];
  if (rate.who != c->who) rate = {c->who, kShakesBurst, now_};
  rate.tokens = std::min(kShakesBurst, rate.tokens + (now_ - rate.since) / 1000 * kShakesPerSecond);
  rate.since = now_;
  if (rate.tokens < 1) return false;
  rate.tokens -= 1;
  return true;
}

// Stops the polling of a socket until there is a turn for its handshake. Polling is level-triggered: each turn would report all that
// wait, so with thousands of them the polling would take more time than the handshakes.
void Server::queueShake(Connection* c) {
  arm(c, kBreaks);
  if (std::exchange(c->tls->queued, true)) return;
  if (shakers_.size() >= 2 * slots_.size()) {
    auto isOver = [this](size_t slot) { return slots_[slot] == nullptr || slots_[slot]->tls == nullptr || !slots_[slot]->tls->queued; };
    shakers_.erase(std::remove_if(shakers_.begin(), shakers_.end(), isOver), shakers_.end());
  }
  shakers_.push_back(c->slot);
}

// At the beginning of a turn. The newest that wait have it: where there are more than can be served, the oldest have given up.
void Server::renewShakes(bool wasBusy) {
  if (shakes_ >= shakesMax_) pressed_ = now_;
  shakes_ = 0;
  shakesMax_ = wasBusy ? kShakesBesideMax : kShakesMax;
  for (size_t called = 0; called < shakesMax_ && !shakers_.empty();) {
    Connection* c = slots_[shakers_.back()];
    shakers_.pop_back();
    if (c == nullptr || c->tls == nullptr || !std::exchange(c->tls->queued, false)) continue;
    arm(c, (c->events & UV_WRITABLE) | UV_READABLE);
    called += 1;
  }
}

// A new connection of a server that speaks TLS.
void Server::secure(Connection* c) {
  if (shaking_ >= std::max<size_t>(8, limits_.connectionsMax / kShakingParts)) crowdOutShaking();
  c->tls = std::make_unique<TlsSession>(tls_.get());
  shaking_ += 1;
}

// Ends unfinished handshakes of whoever has the most, the oldest first; where nobody has more than a share, the oldest of all.
void Server::crowdOutShaking() {
  std::vector<Connection*> found;
  for (Connection* c : slots_) {
    if (c != nullptr && c->tls != nullptr && !c->tls->isUp && c->phase == Phase::kHead) found.push_back(c);
  }
  Hog hog = hogOf(found, found.size());
  if (hog.beyond > 0) found = std::move(hog.has);
  size_t wanted = std::min(found.size(), 1 + shaking_ / kShakingDropParts);
  auto older = [](const Connection* one, const Connection* other) { return one->since < other->since; };
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(wanted), found.end(), older);
  for (size_t at = 0; at < wanted; at += 1) remove(found[at]);
}

// As recv, of plain bytes. EPROTO: no TLS is spoken there, or not ours, and the connection lingers.
ssize_t Server::receive(Connection* c, uint8_t* to, size_t max) {
  if (c->tls == nullptr || c->phase == Phase::kLingering) return recv(c->fd, to, max, 0);
  TlsSession& session = *c->tls;
  ssize_t got = recv(c->fd, received_.data(), std::min(max, kReadMax), 0);
  if (got <= 0) return got;
  bool isFirst = !session.begun, wasUp = session.isUp;
  // The method of a request: no record begins with a letter.
  if (isFirst && received_[0] >= 'A' && received_[0] <= 'Z') {
    refuse(c, plainOnTls);
    return errno = EPROTO, -1;
  }
  size_t plain = session.take(received_.data(), static_cast<size_t>(got), to);
  if (!wasUp) {
    if (!tls_->out.empty()) shakes_ += 1;
    if (session.isUp) {
      shaking_ -= 1;
      c->since = now_;
    }
  } else {
    session.sent += tls_->out.size();
  }
  push(c);
  if (!c->rest.empty()) arm(c, c->events | UV_WRITABLE);
  if (c->broken || session.sent > kSentMax) return errno = ECONNRESET, -1;
  if (session.failed && plain == 0) {
    if (c->phase == Phase::kAnswering) return errno = ECONNRESET, -1;
    linger(c);
    return errno = EPROTO, -1;
  }
  if (plain == 0 && session.ends) return 0;
  if (plain == 0) return errno = EAGAIN, -1;
  if (session.ends) c->ends = true;
  return static_cast<ssize_t>(plain);
}

// Sends what was sealed; what the socket does not take waits. True: it took some.
bool Server::push(Connection* c) {
  std::string& out = tls_->out;
  if (out.empty()) return false;
  size_t sent = 0;
  if (c->rest.empty()) {
    ssize_t took = ::send(c->fd, out.data(), out.size(), MSG_NOSIGNAL);
    if (took > 0) sent = static_cast<size_t>(took);
    else c->broken = c->broken || isHard(errno);
  }
  if (sent < out.size()) {
    c->tls->share = std::max(kRecordMax, sent / kRecordMax * kRecordMax);
    c->rest.append(out, sent, std::string::npos);
  } else {
    c->tls->share = std::min(kShareMax, 2 * c->tls->share);
  }
  out.clear();
  countWaiting(c);
  return sent > 0;
}

void Server::countWaiting(Connection* c) {
  if (c->tls == nullptr) return;
  waiting_ += c->rest.size() - c->tls->counted;
  c->tls->counted = c->rest.size();
}

// Seals these bytes and sends them.
void Server::say(Connection* c, const char* text, size_t length) {
  for (size_t at = 0; at < length; at += kRecordMax) {
    if (!c->tls->seal(text + at, std::min(kRecordMax, length - at))) c->broken = true;
  }
  push(c);
  if (!c->rest.empty()) arm(c, c->events | UV_WRITABLE);
}

// As `transmit`. All of the head is sealed, and of the body as much as this client takes at once; `isWhole`: all of it.
Took Server::transmitSealed(Connection* c, const uint8_t* head, size_t headLength, const uint8_t* body, size_t length, bool isWhole) {
  size_t share = waiting_ > kWaitingMax ? kRecordMax : c->tls->share;
  size_t total = isWhole ? headLength + length : std::min(headLength + length, std::max(headLength, share));
  size_t done = 0;
  bool lost = false, good = true;
  char* record = tls_->record;
  while (good && !lost && done < total) {
    size_t wanted = std::min(kRecordMax, total - done), filled = 0;
    if (done < headLength) {
      filled = std::min(wanted, headLength - done);
      memcpy(record, head + done, filled);
    }
    size_t at = done + filled - headLength;
    if (filled < wanted && !bus::copied(record + filled, body + at, wanted - filled)) {
      lost = true;
      // Nothing of an answer went out whose first bytes are lost.
      if (done == 0) filled = 0;
      wanted = filled;
    }
    good = c->tls->seal(record, wanted);
    done += wanted;
  }
  if (!good) {
    tls_->out.clear();
    return {0, EPIPE, false};
  }
  bool isSent = push(c);
  if (c->broken) return {0, EPIPE, false};
  if (isSent) c->begun = true;
  return {done, 0, lost};
}

// As `send`, which has looked at the slot.
int64_t Server::sendSealed(Connection* c, size_t head, const uint8_t* body, size_t length, int how) {
  // Nothing of a body is sealed on top of what waits.
  bool isCopied = (how & kCopy) != 0;
  size_t wanted = c->rest.empty() || isCopied ? length : 0;
  Took took = transmitSealed(c, shared_.outbox, head, body, wanted, isCopied);
  if (took.lost) return -1;
  c->broken = c->broken || isHard(took.error);
  if (took.bytes > 0) c->since = now_;
  size_t taken = took.bytes > head ? took.bytes - head : 0;
  if (c->broken && isCopied) taken = length;
  c->wants = taken < length;
  c->ended = (how & kEnd) != 0 && !c->wants;
  if (c->ended && c->rest.empty() && !c->broken) finish(c);
  else if (c->wants || c->broken || !c->rest.empty()) arm(c, c->events | UV_WRITABLE);
  return static_cast<int64_t>(taken);
}

// A whole answer of this turn.
void Server::flushSealed(Connection* c, const char* text, size_t length) {
  say(c, text, length);
  c->begun = true;
  c->since = now_;
  if (c->rest.empty() && !c->broken) finish(c);
  else arm(c, c->events | UV_WRITABLE);
}

// Keeps the rest of a body for a slow client. False: its bytes are not to be had any more.
bool Server::setAside(Connection* c, const uint8_t* body, size_t length) {
  if (c->tls == nullptr) return put(body, length, &c->rest);
  Took took = transmitSealed(c, nullptr, 0, body, length, true);
  if (isHard(took.error)) c->broken = true;
  return !took.lost;
}

// Says that no more follows (RFC 8446 section 6.1), where nothing else waits.
void Server::sayEnd(Connection* c) {
  if (c->tls == nullptr || !c->tls->isUp || !c->rest.empty()) return;
  c->tls->close();
  push(c);
}

// Ends the session of a connection that is closed, or is only read on: it must not count among the handshakes that are under way.
void Server::endTls(Connection* c) {
  if (c->tls == nullptr) return;
  if (!c->tls->isUp) shaking_ -= 1;
  c->rest.clear();
  countWaiting(c);
  c->tls.reset();
}

}  // namespace server
