// The life of one connection: a head, perhaps a body, an answer, and again. See server.h.
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "../bus.h"
#include "server.h"
#include "sockets.h"

namespace server {

namespace {

// Where nothing is read, only what breaks a connection is watched for. Urgent bytes, which no client sends, are treated the
// same.
constexpr int kBreaks = UV_PRIORITIZED;
// Bytes of following requests that are read while an answer is outstanding.
constexpr size_t kAheadMax = kHeadMax;
// A nearby client never needs more bytes in flight than this. If the kernel's buffers could grow, those of all readers
// together would exceed the processor's caches, and each byte would cost twice as much.
constexpr int kNearBuffer = 256 * 1024;
constexpr uint32_t kNearUs = 1000;

}  // namespace

// Limits the bytes in flight where the round trip is so short that it does not slow the transfer.
void Server::limitInFlight(Connection* c) {
  c->near = true;
  // Later kernels know more fields: ask for those up to the shortest round trip.
  struct {
    tcp_info known;
    uint64_t rates[2], bytes[2];
    uint32_t segments[2], notSent, shortestUs;
  } info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.shortestUs == 0 || info.shortestUs > kNearUs) return;
  setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &kNearBuffer, sizeof(kNearBuffer));
}

void Server::arm(Connection* c, int events) {
  if (c->events == events) return;
  c->events = events;
  uv_poll_start(c->poll, events, [](uv_poll_t* handle, int status, int found) {
    Connection* connection = static_cast<Connection*>(handle->data);
    if (connection != nullptr) connection->server->ready(connection, status, found);
  });
}

void Server::ready(Connection* c, int status, int events) {
  if (status < 0 || (events & kBreaks) != 0) return gone(c);
  if ((events & UV_WRITABLE) != 0) {
    size_t slot = c->slot;
    writable(c);
    if (slots_[slot] != c) return;
  }
  if ((events & UV_READABLE) != 0) readable(c);
  else if ((events & UV_DISCONNECT) != 0) leftOnHold(c);
}

void Server::readable(Connection* c) {
  if (!hasRoom()) {
    size_t slot = c->slot;
    handOver();
    if (slots_[slot] != c || !hasRoom()) return;
  }
  bool ahead = c->phase == Phase::kAnswering && !c->reading;
  if (ahead && (c->unread() || c->in.size() >= kAheadMax)) {
    arm(c, (c->events & UV_WRITABLE) | kBreaks);
    return;
  }
  // Bytes that are here already are used first, because the buffer has to hold both.
  if (!ahead && c->in.size() > kHeadMax) return takeUp(c->slot);
  if (!mayShake(c)) return queueShake(c);
  // What it sent stays in the socket, and is looked at again at the next sweep.
  if (!mayBegin(c)) {
    c->tls->delayed = true;
    return arm(c, kBreaks);
  }
  uint8_t* bytes = shared_.bytes + bytesAt_;
  size_t before = ahead ? 0 : c->in.size();
  memcpy(bytes, c->in.data(), before);
  ssize_t got = receive(c, bytes + before, ahead ? kAheadMax - c->in.size() : kReadMax);
  if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == EPROTO)) return;
  if (got < 0) return gone(c);
  if (got == 0) return sawEnd(c, bytes, before);
  c->heard = now_;
  size_t length = before + static_cast<size_t>(got);
  if (ahead) c->in.append(reinterpret_cast<char*>(bytes), length);
  else take(c, bytes, length);
}

// The client sends no more, but may still read (half-closed), so the answer is sent. Where it no longer reads, the first byte
// sent brings a reset; where no byte is sent, the connection ends like one that stalls.
void Server::sawEnd(Connection* c, uint8_t* bytes, size_t length) {
  if (c->phase == Phase::kLingering) return remove(c);
  c->ends = true;
  c->since = now_;
  arm(c, (c->events & UV_WRITABLE) | kBreaks);
  if (c->phase == Phase::kHead || c->reading) take(c, bytes, length);
}

// The client of a held connection sends no more. Where it has sent nothing else either, it has left.
void Server::leftOnHold(Connection* c) {
  int waiting = 0;
  if (c->in.empty() && ioctl(c->fd, FIONREAD, &waiting) == 0 && waiting == 0) gone(c);
  else arm(c, kBreaks);
}

// Uses bytes at the free end of the shared ones; what is left of them is kept for later.
void Server::take(Connection* c, uint8_t* bytes, size_t length) {
  if (c->phase == Phase::kLingering) c->since = now_;
  else if (c->phase == Phase::kHead) takeHead(c, bytes, length);
  else takeBody(c, bytes, length);
}

void Server::takeHead(Connection* c, uint8_t* bytes, size_t length) {
  int32_t* out = shared_.inbox + inboxAt_;
  Parsed parsed = HeadReader(bytes, length, out).read();
  if (parsed.fault != nullptr) return refuse(c, *parsed.fault);
  if (parsed.consumed == 0 && c->ends) return gone(c);
  if (parsed.consumed == 0) {
    if (c->in.empty()) c->since = now_;
    c->in.assign(reinterpret_cast<char*>(bytes), length);
    return;
  }
  c->first = c->begun = c->ended = c->wants = c->reading = c->held = false;
  c->last = (out[kFlags] & kKeep) == 0;
  c->chunked = (out[kFlags] & kChunked) != 0;
  c->expects = (out[kFlags] & kExpects) != 0;
  c->chunks = ChunkReader();
  c->bodyLeft = (static_cast<uint64_t>(out[kLengthHigh]) << 30) | static_cast<uint64_t>(out[kLengthLow]);
  c->phase = Phase::kAnswering;
  bool isOver = cacheState_ != nullptr && answerFromCache(c, bytes, out);
  if (!isOver) {
    out[kKind] = kRequest;
    out[kSlot] = static_cast<int32_t>(c->slot);
    out[kBase] = static_cast<int32_t>(bytes - shared_.bytes);
    // The first that JavaScript hears of: what it knows of this slot was another connection's.
    if (!c->announced) out[kFlags] |= kFirst;
    c->announced = true;
    inboxAt_ += static_cast<size_t>(kLines + kLineFields * out[kCount]);
    bytesAt_ += parsed.consumed;
    requests_ += 1;
  }
  if (length > parsed.consumed || !c->in.empty()) {
    c->in.assign(reinterpret_cast<char*>(bytes + parsed.consumed), length - parsed.consumed);
  }
  if (isOver) afterCachedAnswer(c);
}

void Server::takeBody(Connection* c, uint8_t* bytes, size_t length) {
  size_t used = 0, kept = 0;
  if (c->chunked) {
    // The pieces of the body are moved together: however small the chunks are, they are one message.
    while (used < length && c->unread() && !c->chunks.failed) {
      Span piece;
      used += c->chunks.take(bytes + used, length - used, &piece);
      memmove(bytes + kept, piece.start, piece.length);
      kept += piece.length;
    }
    if (c->chunks.failed) return refuse(c, faults::chunk);
  } else {
    used = kept = length < c->bodyLeft ? length : static_cast<size_t>(c->bodyLeft);
    c->bodyLeft -= used;
  }
  bool last = !c->unread();
  c->in.assign(reinterpret_cast<char*>(bytes + used), length - used);
  if (kept > 0 || last) pushEvent(kData, c, static_cast<size_t>(bytes - shared_.bytes), kept, last);
  bytesAt_ += used;
  if (last) c->reading = false;
  else if (c->ends) cutOff(c);
}

// The client ended its side within the body, and may still read: an event states how much was missing.
void Server::cutOff(Connection* c) {
  if (c->ended) return gone(c);
  char word[80];
  if (c->chunked) snprintf(word, sizeof(word), "the body ended before its last chunk");
  else snprintf(word, sizeof(word), "the body ended early, missing bytes: %llu", static_cast<unsigned long long>(c->bodyLeft));
  refuse(c, {400, word});
}

void Server::pause(size_t slot) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c == nullptr || c->phase != Phase::kAnswering || !c->reading) return;
  c->reading = false;
  arm(c, (c->events & UV_WRITABLE) | kBreaks);
}

// Puts bytes of JavaScript's behind those of `to`. False where they are not to be had any more; `to` is what it was then.
bool Server::put(const uint8_t* body, size_t length, std::string* to) {
  size_t before = to->size();
  to->resize(before + length);
  if (bus::copied(&(*to)[before], body, length)) return true;
  to->resize(before);
  return false;
}

int64_t Server::send(size_t slot, size_t head, const uint8_t* body, size_t length, int how) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c == nullptr || c->phase != Phase::kAnswering || c->ended) return 0;
  if (length >= kLarge && !c->near) limitInFlight(c);
  if ((how & kClose) != 0) c->last = true;
  if (delivering_ && c->rest.empty() && (how & kEnd) != 0 && ((how & kCopy) != 0 || length == 0)) {
    size_t start = stage_.size();
    stage_.append(reinterpret_cast<const char*>(shared_.outbox), head);
    if (!put(body, length, &stage_)) {
      stage_.resize(start);
      return -1;
    }
    staged_.push_back({slot, start, head + length});
    c->ended = true;
    return static_cast<int64_t>(length);
  }
  if (c->tls != nullptr) return sendSealed(c, head, body, length, how);
  size_t sent = 0;
  if (c->rest.empty()) {
    Took took = transmit(c, shared_.outbox, head, body, length);
    if (took.lost) return -1;
    // A broken connection is reported by the loop, like one that breaks while nobody writes.
    c->broken = isHard(took.error);
    if (took.bytes > 0) {
      sent = took.bytes;
      c->begun = true;
      c->since = now_;
    }
  }
  if (sent < head) c->rest.append(reinterpret_cast<char*>(shared_.outbox) + sent, head - sent);
  size_t taken = sent > head ? sent - head : 0;
  if (taken < length && (how & kCopy) != 0) {
    if (!put(body + taken, length - taken, &c->rest)) return -1;
    taken = length;
  }
  c->wants = taken < length;
  c->ended = (how & kEnd) != 0 && !c->wants;
  if (c->ended && c->rest.empty()) finish(c);
  else if (c->wants || !c->rest.empty()) arm(c, c->events | UV_WRITABLE);
  return static_cast<int64_t>(taken);
}

void Server::flush() {
  for (const Staged& each : staged_) {
    Connection* c = slots_[each.slot];
    if (c == nullptr) continue;
    const char* bytes = stage_.data() + each.start;
    if (c->tls != nullptr) {
      flushSealed(c, bytes, each.length);
      continue;
    }
    ssize_t took = ::send(c->fd, bytes, each.length, MSG_NOSIGNAL);
    size_t sent = took > 0 ? static_cast<size_t>(took) : 0;
    c->begun = true;
    c->since = now_;
    if (sent == each.length) finish(c);
    else {
      c->rest.assign(bytes + sent, each.length - sent);
      arm(c, c->events | UV_WRITABLE);
    }
  }
  staged_.clear();
  stage_.clear();
}

void Server::writable(Connection* c) {
  if (c->broken) return gone(c);
  if (!c->rest.empty()) {
    ssize_t took = ::send(c->fd, c->rest.data(), c->rest.size(), MSG_NOSIGNAL);
    if (took < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (took < 0) return gone(c);
    c->begun = true;
    c->since = now_;
    c->rest.erase(0, static_cast<size_t>(took));
    countWaiting(c);
    if (!c->rest.empty()) return;
  }
  if (c->phase != Phase::kAnswering) return arm(c, c->events & ~UV_WRITABLE);
  if (c->body.length > 0) {
    if (!isLaterHere(c)) return;
    Took took = transmit(c, nullptr, 0, c->body.start, c->body.length, true);
    if (took.lost) finishCached(c, kBroken);
    if (took.lost || isHard(took.error)) return gone(c);
    if (took.bytes > 0) c->since = now_;
    c->body.start += took.bytes;
    c->body.length -= took.bytes;
    if (c->isFull()) return;
  }
  if (c->ended) return finish(c);
  if (c->wants) pushEvent(kWritable, c);
  // Large bodies wait for room again and again, so writing stays watched until JavaScript no longer answers.
  else arm(c, c->events & ~UV_WRITABLE);
  c->wants = false;
}

// A client that takes bytes, however slowly, does not stall. The kernel says that there is room only when a third of its buffer is free, so
// the kernel is queried for how many bytes wait there.
void Server::lookAt(Connection* c) {
  int waiting = 0;
  if (ioctl(c->fd, SIOCOUTQ, &waiting) != 0) return;
  bool isMoving = waiting < c->waiting;
  if (isMoving) c->since = now_;
  // It sees no other sign of it: sealed bytes count as sent.
  if (isMoving && c->tls != nullptr && c->wants) pushEvent(kWritable, c);
  c->waiting = waiting;
  if (c->body.length > 0) arm(c, c->events | UV_WRITABLE);
}

// Uses what waits in the socket of a connection: bytes of its client, or room for those of an answer. True where there was any; the
// connection may be gone then.
bool Server::heed(Connection* c) {
  bool isAnswer = c->phase == Phase::kAnswering;
  pollfd socket = {c->fd, static_cast<short>(isAnswer ? POLLOUT : POLLIN), 0};
  if (poll(&socket, 1, 0) != 1 || (socket.revents & socket.events) == 0) return false;
  if (isAnswer) writable(c);
  else readable(c);
  return true;
}

// The answer is out.
void Server::finish(Connection* c) {
  finishCached(c, kWhole);
  if (c->last || closing_ || c->unread() || (c->ends && c->in.empty())) return linger(c);
  c->phase = Phase::kHead;
  await(c);
}

// Waits for the next request, or for the end of a hold.
void Server::await(Connection* c) {
  c->since = now_;
  arm(c, c->ends ? kBreaks : c->held ? UV_DISCONNECT : UV_READABLE);
  if (!c->in.empty() && !c->held) later(c->slot);
}

void Server::hold(size_t slot) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c != nullptr && c->phase == Phase::kAnswering) c->held = true;
}

void Server::release(size_t slot) {
  Connection* c = slot < slots_.size() ? slots_[slot] : nullptr;
  if (c == nullptr || !c->held) return;
  c->held = false;
  if (c->phase == Phase::kHead) await(c);
}

// Answers what cannot be a request, where nothing else was answered yet, and ends the connection.
void Server::refuse(Connection* c, const Fault& fault) {
  if (c->begun && c->phase == Phase::kAnswering) return gone(c);
  if (c->phase == Phase::kAnswering) pushEvent(kGone, c);
  const char* reason = fault.status == 400   ? "Bad Request"
                       : fault.status == 408 ? "Request Timeout"
                       : fault.status == 431 ? "Request Header Fields Too Large"
                                             : "Version Not Supported";
  char text[384];
  int length = snprintf(text, sizeof(text),
                        "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"
                        "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                        fault.status, reason, strlen(fault.word), fault.word);
  // Not repeated: a client that does not take these few bytes is dropped anyway.
  if (c->tls != nullptr && c->tls->isUp) say(c, text, static_cast<size_t>(length));
  else if (c->tls == nullptr || !c->tls->begun) (void)!::send(c->fd, text, static_cast<size_t>(length), MSG_NOSIGNAL);
  linger(c);
}

// Ends the sending side and reads on for a while (RFC 9112 section 9.6): closing with unread bytes would reset the connection, and the
// client would lose the answer.
void Server::linger(Connection* c) {
  c->phase = Phase::kLingering;
  c->since = c->lingers = now_;
  sayEnd(c);
  endTls(c);
  c->in = std::string();
  c->rest = std::string();
  shutdown(c->fd, SHUT_WR);
  arm(c, UV_READABLE);
}

// The client has left, or took too long.
void Server::gone(Connection* c) {
  if (c->phase == Phase::kAnswering && !c->ended) pushEvent(kGone, c);
  finishCached(c, kLeft);
  remove(c);
}

void Server::remove(Connection* c) {
  finishCached(c, kAborted);
  if (c->phase == Phase::kHead) sayEnd(c);
  endTls(c);
  slots_[c->slot] = nullptr;
  // Not before JavaScript has read what is in the inbox about it.
  freedNext_.push_back(c->slot);
  open_ -= 1;
  uv_poll_stop(c->poll);
  ::close(c->fd);
  sockets.release();
  loop_.end(c->poll);
  delete c;
}

}  // namespace server
