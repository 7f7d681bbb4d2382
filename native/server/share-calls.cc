// Calls by which JavaScript lends a server what it needs beside its answers: a key to sign with, and the answers of other threads.
#include "listener.h"

namespace server {

// cacheShare(listener, group): from now on answers are shared with all servers of this process that were given the same shared memory here.
napi_value cacheShare(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheShare");
  Listener* listener = listenerOf(arguments);
  auto group = arguments.shared<int32_t>(1, napi_int32_array, "is no Int32Array");
  if (!arguments.good || listener == nullptr) return nullptr;
  CacheState* state = listener->server()->cacheState();
  if (group.count == 0 || state->group != nullptr) return arguments.wrong(1, "cannot be shared by", true), nullptr;
  if (keep(env, arguments, 1, &listener->kept) == nullptr) return nullptr;
  state->group = group.start;
  Tables::all().join(group.start, &state->cache);
  return nullptr;
}

// cacheSigns(listener, key, reuseSeconds): from now on what is too old is signed here. `key`: what `lend` of native/ed25519 gives.
napi_value cacheSigns(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "cacheSigns");
  Listener* listener = listenerOf(arguments);
  int64_t reuseSeconds = static_cast<int64_t>(arguments.integer(2, 0, 1000000));
  if (!arguments.good || listener == nullptr) return nullptr;
  const borrowed_key::Key* key = borrowed_key::take(env, arguments.at(1));
  if (key == nullptr) return arguments.wrong(1, "was not made by the addon of signatures", false), nullptr;
  listener->server()->cacheState()->sealer = std::make_unique<Sealer>(*key, reuseSeconds);
  return nullptr;
}

}  // namespace server
