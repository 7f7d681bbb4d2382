// Requests: sent, paused, dropped; and the end of all. See client.h.
#include <cstdlib>
#include <utility>

#include "client.h"

namespace client {

Client::Client(uv_loop_t* loop, Shared shared, Names names, std::function<void(size_t)> hear)
    : loop_(loop, [this] { handOver(); }),
      shared_(shared),
      names_(std::move(names)),
      hear_(std::move(hear)),
      later_(loop_.timer(this)),
      sweep_(loop_.timer(this)) {
  uv_unref(sweep_);
}

size_t Client::addOrigin(size_t connectionsMax) {
  origins_.emplace_back();
  origins_.back().connectionsMax = connectionsMax;
  return origins_.size() - 1;
}

Trust* Client::trust() {
  const TlsCalls* calls = tlsCalls();
  if (trust_ == nullptr && calls != nullptr) trust_ = std::make_unique<Trust>(calls);
  return trust_.get();
}

bool Client::secure(size_t index, const std::string& host, bool isAddress) {
  if (trust() == nullptr) return false;
  Origin& origin = origins_[index];
  origin.host = host;
  origin.isAddress = isAddress;
  origin.resumable = std::make_unique<Resumable>();
  return true;
}

uint32_t Client::begin(size_t origin, std::string text, bool isHead, uint64_t wholeMax) {
  do {
    lastId_ = lastId_ % 0x3fffffff + 1;
  } while (requests_.count(lastId_) > 0);
  auto made = std::make_unique<Request>();
  Request* request = made.get();
  request->id = lastId_;
  request->origin = origin;
  request->text = std::move(text);
  request->isHead = isHead;
  request->wholeMax = wholeMax;
  uint32_t id = request->id;
  requests_.emplace(id, std::move(made));
  start(request);
  return id;
}

void Client::pause(uint32_t id) {
  auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Connection* c = found->second->connection;
  if (c == nullptr || c->phase != Phase::kBody || c->collects) return;
  found->second->isPaused = true;
  arm(c, 0);
}

void Client::resume(uint32_t id) {
  auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Connection* c = found->second->connection;
  found->second->isPaused = false;
  bool waits = c != nullptr && c->tls != nullptr && !c->tls->out.empty();
  if (c != nullptr && c->phase == Phase::kBody) arm(c, UV_READABLE | (waits ? UV_WRITABLE : 0));
}

void Client::drop(uint32_t id) {
  auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request* request = found->second.get();
  size_t origin = request->origin;
  Connection* c = request->connection;
  forget(request);
  if (c != nullptr) {
    c->request = nullptr;
    close(c);
  }
  startNext(origin);
}

// One that waits for a connection is found to be gone when its turn comes.
void Client::forget(Request* request) { requests_.erase(request->id); }

void Client::destroy(std::function<void()> over) {
  loop_.destroy(std::move(over));
  while (!connections_.empty()) close(connections_.begin()->first);
  requests_.clear();
  uv_timer_stop(later_);
  loop_.end(later_);
  uv_timer_stop(sweep_);
  loop_.end(sweep_);
}

}  // namespace client
