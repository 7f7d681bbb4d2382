// The server as JavaScript sees it: Node-API in and out. See server.h for what it does, server.ts for the words.
#include <errno.h>
#include <node_api.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../bus.h"
#include "listener.h"
#include "places.h"
#include "sockets.h"

namespace {

using namespace server;

constexpr size_t kConnectionsMax = 1 << 20;
// Numbers or bytes of one of the parts of the memory that both sides see.
constexpr size_t kPartMax = 1 << 28;

// Starts a server. Null: an exception waits.
Listener* start(napi_env env, Arguments& arguments) {
  std::string host = arguments.text(0, 63);
  int port = static_cast<int>(arguments.integer(1, 0, 65535));
  Limits limits{arguments.amount(2), arguments.amount(3), arguments.amount(4), arguments.amount(5),
                static_cast<size_t>(arguments.integer(6, 1, kConnectionsMax))};
  size_t inbox = static_cast<size_t>(arguments.integer(7, inboxReserve(limits.connectionsMax), kPartMax));
  size_t bytes = static_cast<size_t>(arguments.integer(8, kBytesMin, kPartMax));
  size_t outbox = static_cast<size_t>(arguments.integer(9, kHeadMax, kPartMax));
  napi_valuetype type = napi_undefined;
  napi_typeof(env, arguments.at(10), &type);
  if (arguments.good && type != napi_function) arguments.wrong(10, "is no function", false);
  if (!arguments.good) return nullptr;
  Listener* listener = new Listener{};
  listener->memory->inbox.resize(inbox);
  listener->memory->bytes.resize(bytes);
  listener->memory->outbox.resize(outbox);
  Shared shared{listener->memory->inbox.data(), inbox, listener->memory->bytes.data(), bytes, listener->memory->outbox.data(), outbox};
  uv_loop_t* loop = loop_bridge::bind(env, arguments.at(10), listener);
  listener->part = new Server(loop, shared, limits, [listener](size_t numbers) { callWith(listener->env, listener->hear, numbers); });
  int code = listener->server()->listen(host, port);
  if (code == 0) return listener;
  loop_bridge::destroy(listener);
  fail(env, "listen", code);
  return nullptr;
}

// open(host, port, headMs, idleMs, stallMs, lingerMs, connectionsMax, inboxNumbers, bytesBytes, outboxBytes, hear) ->
// [listener, port, inbox, bytes, outbox], the last three as ArrayBuffers
napi_value open(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "open");
  Listener* listener = start(env, arguments);
  if (listener == nullptr) return nullptr;
  Memory& memory = *listener->memory;
  napi_value parts[] = {
      loop_bridge::keyOf(env, listener),
      numberOf(env, listener->server()->port),
      loop_bridge::viewOf(listener, memory.inbox.data(), memory.inbox.size() * sizeof(int32_t)),
      loop_bridge::viewOf(listener, memory.bytes.data(), memory.bytes.size()),
      loop_bridge::viewOf(listener, memory.outbox.data(), memory.outbox.size()),
  };
  return loop_bridge::listOf(listener, parts);
}

// send(listener, slot, headBytes, body, how) -> bytes of the body that were taken, or less than 0
napi_value send(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "send");
  Server* server = serverOf(arguments);
  if (server == nullptr) return arguments.good ? numberOf(env, 0) : nullptr;
  size_t slot = slotOf(arguments, server);
  size_t head = static_cast<size_t>(arguments.integer(2, 0, server->outboxLength()));
  Bytes body = arguments.bytes(3);
  int how = static_cast<int>(arguments.integer(4, 0, kEnd | kClose | kCopy));
  if (!arguments.good) return nullptr;
  return numberOf(env, static_cast<double>(server->send(slot, head, body.data, body.length, how)));
}

// NAME(listener, slot): what the server does with one connection.
template <void (Server::*act)(size_t)>
napi_value onSlot(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "a call about a slot");
  Server* server = serverOf(arguments);
  if (server == nullptr) return nullptr;
  size_t slot = slotOf(arguments, server);
  if (arguments.good) (server->*act)(slot);
  return nullptr;
}

// address(listener, slot) -> text
napi_value address(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "address");
  const Server* server = serverOf(arguments);
  std::string text;
  if (server != nullptr) {
    size_t slot = slotOf(arguments, server);
    if (arguments.good) text = server->address(slot);
  }
  if (!arguments.good) return nullptr;
  napi_value result;
  napi_create_string_latin1(env, text.data(), text.size(), &result);
  return result;
}

// sweep(listener, nowMs)
napi_value sweep(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "sweep");
  Server* server = serverOf(arguments);
  double now = arguments.amount(1);
  if (server != nullptr && arguments.good) server->sweep(now);
  return nullptr;
}

// shut(listener)
napi_value shut(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "shut");
  Server* server = serverOf(arguments);
  if (server != nullptr) server->shut();
  return nullptr;
}

// bound(max): accepted sockets of all servers of this process together.
napi_value bound(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "bound");
  int64_t max = arguments.integer(0, 1, kPartMax);
  if (arguments.good) server::sockets.max = static_cast<size_t>(max);
  return nullptr;
}

// places(finder): what `places` of native/mapped gives. From now on bodies that lie in mapped files are sent from these.
napi_value places(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "places");
  const file_places::Finder* finder = file_places::take(env, arguments.at(0));
  if (finder == nullptr) return arguments.wrong(0, "was not made by the addon of mapped files", false), nullptr;
  findPlace.store(finder->find, std::memory_order_release);
  return nullptr;
}

// sockets() -> [open, max, times that a server stopped accepting]
napi_value socketUsage(napi_env env, napi_callback_info) {
  napi_value result, each;
  napi_create_array(env, &result);
  size_t max = server::sockets.max;
  double numbers[3] = {static_cast<double>(server::sockets.open.load()), max == SIZE_MAX ? 0 : static_cast<double>(max),
                       static_cast<double>(server::sockets.pauses.load())};
  for (uint32_t index = 0; index < 3; index += 1) {
    napi_create_double(env, numbers[index], &each);
    napi_set_element(env, result, index, each);
  }
  return result;
}

}  // namespace

NAPI_MODULE_INIT() {
  bus::watch();
  return give(env, exports, {{"open", open},
                             {"send", send},
                             {"read", onSlot<&Server::read>},
                             {"pause", onSlot<&Server::pause>},
                             {"hold", onSlot<&Server::hold>},
                             {"release", onSlot<&Server::release>},
                             {"drop", onSlot<&Server::drop>},
                             {"address", address},
                             {"sweep", sweep},
                             {"bound", bound},
                             {"places", places},
                             {"sockets", socketUsage},
                             {"shut", shut},
                             {"destroy", loop_bridge::destroyCall<Listener>},
                             {"tlsReady", tlsReady},
                             {"tlsOpen", tlsOpen},
                             {"tlsAdd", tlsAdd},
                             {"tlsUse", tlsUse},
                             {"cacheOpen", cacheOpen},
                             {"cacheCells", cacheCells},
                             {"cacheTally", cacheTally},
                             {"cacheRegion", cacheRegion},
                             {"cacheClose", cacheClose},
                             {"cachePut", cachePut},
                             {"cacheShare", cacheShare},
                             {"cacheSigns", cacheSigns},
                             {"cacheLimits", cacheLimits},
                             {"cacheClients", cacheClients},
                             {"cacheSamples", cacheSamples},
                             {"cacheUsage", cacheUsage}});
}
