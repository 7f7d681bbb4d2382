// How head and body reach the socket: in one call out of memory, or from the file that the body lies in.
#include <errno.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "places.h"
#include "server.h"

namespace server {

namespace {

// The kernel copies.
Took fromMemory(int fd, const uint8_t* head, size_t headLength, const uint8_t* body, size_t length) {
  iovec parts[2] = {{const_cast<uint8_t*>(head), headLength}, {const_cast<uint8_t*>(body), length}};
  msghdr message = {};
  message.msg_iov = headLength > 0 ? parts : parts + 1;
  message.msg_iovlen = (headLength > 0 ? 1u : 0u) + (length > 0 ? 1u : 0u);
  if (message.msg_iovlen == 0) return {0, 0, false};
  ssize_t took = sendmsg(fd, &message, MSG_NOSIGNAL);
  // A file that shrank beneath its mapping: the kernel could not read the first byte that it was to send.
  if (took < 0) return {0, errno, errno == EFAULT};
  return {static_cast<size_t>(took), 0, false};
}

// The socket is given the pages of the file. These must not change until the client has them: files of content never do.
Took fromFile(int fd, const uint8_t* head, size_t headLength, const file_places::Place& place, const uint8_t* body, size_t length) {
  size_t sent = 0;
  if (headLength > 0) {
    // The first bytes of the body go out in one packet with it.
    ssize_t took = ::send(fd, head, headLength, MSG_NOSIGNAL | MSG_MORE);
    if (took < 0) return {0, errno, false};
    sent = static_cast<size_t>(took);
    if (sent < headLength) return {sent, 0, false};
  }
  off_t offset = place.offset;
  ssize_t took = sendfile(fd, place.fd, &offset, length);
  if (took > 0) return {sent + static_cast<size_t>(took), 0, false};
  // Nothing where there must be bytes: the file has shrunk.
  if (took == 0) return {sent, 0, true};
  bool isFull = errno == EAGAIN || errno == EINTR;
  bool isLeft = errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT;
  if (isFull || isLeft) return {sent, sent > 0 ? 0 : errno, false};
  // The file system cannot do this, or what confines the process forbids it. Where the disk fails, this finds it out, too.
  Took rest = fromMemory(fd, nullptr, 0, body, length);
  return {sent + rest.bytes, sent > 0 ? 0 : rest.error, rest.lost};
}

}  // namespace

// `isRest`: of a body that began in its file. A file that shrinks in the middle is then noticed at its very end, too, where memory has zeros.
Took Server::transmit(Connection* c, const uint8_t* head, size_t headLength, const uint8_t* body, size_t length, bool isRest) {
  if (c->tls != nullptr) return transmitSealed(c, head, headLength, body, length, false);
  file_places::Place place;
  if ((isRest || length >= kFromFile) && placeOf(body, length, &place)) return fromFile(c->fd, head, headLength, place, body, length);
  return fromMemory(c->fd, head, headLength, body, length);
}

}  // namespace server
