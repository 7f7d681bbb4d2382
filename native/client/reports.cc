// The reports to JavaScript, and when they are made. See client.h.
#include <algorithm>
#include <cstring>
#include <utility>

#include "client.h"

namespace client {

void Client::handOver() {
  if (delivering_ || loop_.isOver()) return;
  loop_.stopWaking();
  size_t reported = 0;
  for (const Breakage& each : brokenNext_) {
    // The rest is reported in the next turn.
    size_t length = std::min(each.reason.size(), kReasonMax);
    if (inboxAt_ + 5 > shared_.inboxLength || bytesAt_ + length > shared_.bytesLength) break;
    number(kBroken);
    number(each.id);
    number(each.code);
    number(static_cast<int64_t>(place(each.reason.data(), length)));
    number(static_cast<int64_t>(length));
    reported += 1;
  }
  brokenNext_.erase(brokenNext_.begin(), brokenNext_.begin() + static_cast<std::ptrdiff_t>(reported));
  if (inboxAt_ == 0) return;
  delivering_ = true;
  hear_(inboxAt_);
  delivering_ = false;
  inboxAt_ = bytesAt_ = 0;
  if (!brokenNext_.empty()) loop_.wake();
}

void Client::makeRoom(size_t numbers, size_t bytes) {
  if (inboxAt_ + numbers > shared_.inboxLength || bytesAt_ + bytes > shared_.bytesLength) handOver();
}

size_t Client::place(const char* bytes, size_t length) {
  size_t at = bytesAt_;
  if (length > 0) memcpy(shared_.bytes + at, bytes, length);
  bytesAt_ += length;
  return at;
}

void Client::reportHead(Connection* c, const std::string& text, const std::string* body) {
  size_t bodyLength = body == nullptr ? 0 : body->size();
  uint32_t id = c->request->id;
  makeRoom(kHeadNumbers + 3 * c->head.lines.size(), text.size() + bodyLength);
  // JavaScript heard of others, and may have let go of this one.
  if (!isMine(c, id)) return;
  const Head& head = c->head;
  number(kHead);
  number(id);
  number(head.status);
  number((body == nullptr ? 0 : kWhole) | (c->isReused ? kReused : 0));
  size_t at = place(text.data(), text.size());
  number(static_cast<int64_t>(at));
  number(static_cast<int64_t>(at + text.size()));
  number(static_cast<int64_t>(body == nullptr ? 0 : place(body->data(), bodyLength)));
  number(static_cast<int64_t>(bodyLength));
  number(static_cast<int64_t>(head.lines.size()));
  for (const Line& line : head.lines) {
    number(line.name);
    number(static_cast<int64_t>(line.start));
    number(static_cast<int64_t>(line.end));
  }
}

void Client::reportData(uint32_t id, const char* bytes, size_t length, bool isLast, bool isShared) {
  makeRoom(5, isShared ? 0 : length);
  size_t at = bytesAt_;
  if (isShared) bytesAt_ += length;
  else at = place(bytes, length);
  number(kData);
  number(id);
  number(static_cast<int64_t>(at));
  number(static_cast<int64_t>(length));
  number(isLast ? 1 : 0);
}

void Client::reportCame(uint32_t id, size_t bytes) {
  makeRoom(3, 0);
  number(kCame);
  number(id);
  number(static_cast<int64_t>(bytes));
}

void Client::reportEnd(uint32_t id) {
  makeRoom(2, 0);
  number(kEnd);
  number(id);
}

void Client::reportBroken(uint32_t id, int code, std::string reason) {
  brokenNext_.push_back({id, code, std::move(reason)});
  loop_.wake();
}

}  // namespace client
