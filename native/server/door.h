// What JavaScript holds of a server, for the files that speak with it.
#pragma once

#include <node_api.h>

#include <memory>
#include <vector>

#include "../calls.h"
#include "server.h"

namespace server {

// What both sides see. The views that JavaScript has keep it, too: it is freed with the last of them, so that it stays valid
// for this side.
struct Memory {
  std::vector<int32_t> inbox;
  std::vector<uint8_t> bytes, outbox;
};

// Numbers in shared memory, which nobody can take away.
struct Cells {
  int32_t* start;
  size_t length;
};

// One server and the JavaScript that it talks to.
struct Door {
  napi_env env;
  Server* server = nullptr;
  napi_ref hear = nullptr;
  std::shared_ptr<Memory> memory;
  napi_async_cleanup_hook_handle hook = nullptr;
  // Shared memory that repeated answers look at, and memory that their bodies lie in, by region; null: it was closed.
  std::vector<Cells> cells;
  std::vector<napi_ref> kept, regions;
};

// What JavaScript holds. `door` is null once closed.
struct Key {
  Door* door;
};

// The server of the first argument; null once it is closed, or where that is none (`arguments` says which).
inline Server* serverOf(Arguments& arguments) {
  Key* key = arguments.external<Key>(0);
  return key == nullptr || key->door == nullptr ? nullptr : key->door->server;
}

// One of the slots of a server: any other number is an exception.
inline size_t slotOf(Arguments& arguments, const Server* server) {
  if (server->slots() > 0) return static_cast<size_t>(arguments.integer(1, 0, server->slots() - 1));
  arguments.wrong(1, "is no slot", true);
  return 0;
}

// Calls about repeated answers (repeat-calls.cc).
napi_value repeatOpen(napi_env env, napi_callback_info info);
napi_value repeatCells(napi_env env, napi_callback_info info);
napi_value repeatTally(napi_env env, napi_callback_info info);
napi_value repeatRegion(napi_env env, napi_callback_info info);
napi_value repeatClose(napi_env env, napi_callback_info info);
napi_value repeatPut(napi_env env, napi_callback_info info);
napi_value repeatSigns(napi_env env, napi_callback_info info);
napi_value repeatLimits(napi_env env, napi_callback_info info);
napi_value repeatSamples(napi_env env, napi_callback_info info);
napi_value repeatUsage(napi_env env, napi_callback_info info);

}  // namespace server
