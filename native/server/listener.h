// What JavaScript holds of a server, for the files that speak with it.
#pragma once

#include <node_api.h>

#include <memory>
#include <vector>

#include "../loop-bridge.h"
#include "server.h"

namespace server {

// What both sides see. The views that JavaScript has keep it, too: it is freed with the last of them, so that it stays valid
// for this side.
struct Memory {
  std::vector<int32_t> inbox;
  std::vector<uint8_t> bytes, outbox;
};

// What a region is kept by: its memory, and the numbers that say what is believed of it.
constexpr size_t kRegionRefs = 3;

// One server and the JavaScript that it talks to. `kept`: shared memory that cache entries look at.
struct Listener : loop_bridge::Bridge<Server, Memory> {
  // What regions are kept by, one region behind the other; null: it was closed.
  std::vector<napi_ref> regions;
  Server* server() const { return part; }
  void release() {
    Bridge::release();
    loop_bridge::releaseAll(env, regions);
  }
};

// The server of the first argument; null once it is closed, or where that is none (`arguments` says which).
inline Server* serverOf(Arguments& arguments) {
  Listener* listener = loop_bridge::ownerOf<Listener>(arguments);
  return listener == nullptr ? nullptr : listener->server();
}

// One of the slots of a server: any other number is an exception.
inline size_t slotOf(Arguments& arguments, const Server* server) {
  if (server->slots() > 0) return static_cast<size_t>(arguments.integer(1, 0, server->slots() - 1));
  arguments.wrong(1, "is no slot", true);
  return 0;
}

// The listener of the first argument, where it has a response cache. Null: it is closed, or was never opened for them.
inline Listener* listenerOf(Arguments& arguments) {
  Server* server = serverOf(arguments);
  if (server == nullptr || server->cacheState() == nullptr) return nullptr;
  return loop_bridge::ownerOf<Listener>(arguments);
}

// Keeps an argument for as long as the listener; its number there.
inline napi_value keep(napi_env env, Arguments& arguments, size_t index, std::vector<napi_ref>* kept) {
  napi_ref made = nullptr;
  if (napi_create_reference(env, arguments.at(index), 1, &made) != napi_ok) return nullptr;
  kept->push_back(made);
  return numberOf(env, static_cast<double>(kept->size() - 1));
}

// Calls about the response cache (cache-calls.cc, share-calls.cc).
napi_value cacheOpen(napi_env env, napi_callback_info info);
napi_value cacheCells(napi_env env, napi_callback_info info);
napi_value cacheTally(napi_env env, napi_callback_info info);
napi_value cacheRegion(napi_env env, napi_callback_info info);
napi_value cacheClose(napi_env env, napi_callback_info info);
napi_value cachePut(napi_env env, napi_callback_info info);
napi_value cacheShare(napi_env env, napi_callback_info info);
napi_value cacheSigns(napi_env env, napi_callback_info info);
napi_value cacheLimits(napi_env env, napi_callback_info info);
napi_value cacheClients(napi_env env, napi_callback_info info);
napi_value cacheSamples(napi_env env, napi_callback_info info);
napi_value cacheUsage(napi_env env, napi_callback_info info);

// Calls about TLS (tls-calls.cc).
napi_value tlsReady(napi_env env, napi_callback_info info);
napi_value tlsOpen(napi_env env, napi_callback_info info);
napi_value tlsAdd(napi_env env, napi_callback_info info);
napi_value tlsUse(napi_env env, napi_callback_info info);

}  // namespace server
