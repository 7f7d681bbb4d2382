// The server as JavaScript sees it: Node-API in and out. See server.h for what it does, server.ts for the words.
#include <errno.h>
#include <node_api.h>

#include <cstring>
#include <utility>

#include "../exports.h"
#include "server.h"

namespace {

using server::Limits;
using server::Server;
using server::Shared;

// One server, the JavaScript that it talks to, and the memory they share.
struct Door {
  napi_env env;
  Server* server = nullptr;
  napi_ref hear = nullptr;
  napi_ref memory[3] = {nullptr, nullptr, nullptr};
  const uint8_t* outbox = nullptr;
  napi_async_cleanup_hook_handle hook = nullptr;
};

napi_value fail(napi_env env, const char* what, int code) {
  std::string message = std::string(what) + ": " + strerror(code);
  napi_throw_error(env, nullptr, message.c_str());
  return nullptr;
}

void hear(Door* door, size_t count) {
  napi_env env = door->env;
  napi_handle_scope scope;
  napi_open_handle_scope(env, &scope);
  napi_value function, receiver, argument, result;
  napi_get_reference_value(env, door->hear, &function);
  napi_get_global(env, &receiver);
  napi_create_uint32(env, static_cast<uint32_t>(count), &argument);
  if (napi_make_callback(env, nullptr, receiver, function, 1, &argument, &result) == napi_pending_exception) {
    napi_value error;
    napi_get_and_clear_last_exception(env, &error);
    napi_fatal_exception(env, error);
  }
  napi_close_handle_scope(env, scope);
}

// Ends the server; what it leaves is freed when the loop has let go of it.
void destroy(Door* door) {
  Server* ending = std::exchange(door->server, nullptr);
  if (ending == nullptr) return;
  ending->destroy([door, ending] {
    napi_handle_scope scope;
    napi_open_handle_scope(door->env, &scope);
    napi_delete_reference(door->env, door->hear);
    for (napi_ref each : door->memory) napi_delete_reference(door->env, each);
    napi_close_handle_scope(door->env, scope);
    napi_remove_async_cleanup_hook(door->hook);
    delete door;
    delete ending;
  });
}

double number(napi_env env, napi_value value) {
  double found = 0;
  napi_get_value_double(env, value, &found);
  return found;
}

size_t count(napi_env env, napi_value value) {
  uint32_t found = 0;
  napi_get_value_uint32(env, value, &found);
  return found;
}

// The bytes of a typed array; its length counts elements.
uint8_t* view(napi_env env, napi_value value, size_t* length) {
  void* data = nullptr;
  *length = 0;
  napi_get_typedarray_info(env, value, nullptr, length, &data, nullptr, nullptr);
  return static_cast<uint8_t*>(data);
}

constexpr size_t kArguments = 12;

struct Call {
  napi_value args[kArguments];
  Door* door = nullptr;
  // The first argument of every call but `open` is the door; null once it is closed.
  Server* server = nullptr;
  Call(napi_env env, napi_callback_info info) {
    size_t found = kArguments;
    napi_get_cb_info(env, info, &found, args, nullptr, nullptr);
    void* data = nullptr;
    if (napi_get_value_external(env, args[0], &data) != napi_ok) return;
    door = *static_cast<Door**>(data);
    if (door != nullptr) server = door->server;
  }
};

// open(host, port, inbox, bytes, outbox, headMs, idleMs, stallMs, lingerMs, connectionsMax, hear) -> [door, port]
napi_value open(napi_env env, napi_callback_info info) {
  Call call(env, info);
  napi_value* args = call.args;
  char host[64];
  size_t length = 0;
  if (napi_get_value_string_utf8(env, args[0], host, sizeof(host), &length) != napi_ok) return fail(env, "listen", EINVAL);
  Shared shared;
  shared.inbox = reinterpret_cast<int32_t*>(view(env, args[2], &shared.inboxLength));
  shared.bytes = view(env, args[3], &shared.bytesLength);
  shared.outbox = view(env, args[4], &shared.outboxLength);
  Limits limits{number(env, args[5]), number(env, args[6]), number(env, args[7]), number(env, args[8]), count(env, args[9])};
  uv_loop_t* loop = nullptr;
  napi_get_uv_event_loop(env, &loop);
  Door* door = new Door{};
  door->env = env;
  door->outbox = shared.outbox;
  napi_create_reference(env, args[10], 1, &door->hear);
  for (int index = 0; index < 3; index += 1) napi_create_reference(env, args[2 + index], 1, &door->memory[index]);
  door->server = new Server(loop, shared, limits, [door](size_t numbers) { hear(door, numbers); });
  // A thread that ends with its server open must still leave an empty loop behind.
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { destroy(static_cast<Door*>(data)); }, door, &door->hook);
  int code = door->server->listen(host, static_cast<int>(number(env, args[1])));
  int port = door->server->port;
  if (code != 0) {
    destroy(door);
    return fail(env, "listen", code);
  }
  napi_value result, each;
  napi_create_array_with_length(env, 2, &result);
  napi_create_external(
      env, new Door*(door), [](napi_env, void* data, void*) { delete static_cast<Door**>(data); }, nullptr, &each);
  napi_set_element(env, result, 0, each);
  napi_create_int32(env, port, &each);
  napi_set_element(env, result, 1, each);
  return result;
}

// send(door, slot, headBytes, body, how) -> bytes of the body that were taken
napi_value send(napi_env env, napi_callback_info info) {
  Call call(env, info);
  size_t taken = 0;
  if (call.server != nullptr) {
    size_t length = 0;
    const uint8_t* body = view(env, call.args[3], &length);
    taken = call.server->send(count(env, call.args[1]), count(env, call.args[2]), body, length,
                              static_cast<int>(count(env, call.args[4])));
  }
  napi_value result;
  napi_create_uint32(env, static_cast<uint32_t>(taken), &result);
  return result;
}

// stand(door, at, beforeBytes, afterBytes, restBytes, body, start, size, file) -> number of the answer, or less than 0
napi_value stand(napi_env env, napi_callback_info info) {
  Call call(env, info);
  int found = -1;
  if (call.server != nullptr) {
    size_t lengths[3] = {count(env, call.args[2]), count(env, call.args[3]), count(env, call.args[4])};
    const char* head = reinterpret_cast<const char*>(call.door->outbox);
    server::Standing answer{};
    answer.before.assign(head, lengths[0]);
    answer.after.assign(head + lengths[0], lengths[1]);
    answer.rest.assign(head + lengths[0] + lengths[1], lengths[2]);
    answer.body = view(env, call.args[5], &answer.length);
    answer.start = static_cast<uint64_t>(number(env, call.args[6]));
    answer.size = static_cast<uint64_t>(number(env, call.args[7]));
    answer.file = static_cast<int>(number(env, call.args[8]));
    found = call.server->stand(count(env, call.args[1]), std::move(answer));
  }
  napi_value result;
  napi_create_int32(env, found, &result);
  return result;
}

// forget(door) -> numbers of the answers that are still being taken
napi_value forget(napi_env env, napi_callback_info info) {
  Call call(env, info);
  napi_value result, each;
  napi_create_array(env, &result);
  if (call.server == nullptr) return result;
  std::vector<uint32_t> used = call.server->forget();
  for (uint32_t index = 0; index < used.size(); index += 1) {
    napi_create_uint32(env, used[index], &each);
    napi_set_element(env, result, index, each);
  }
  return result;
}

// NAME(door, slot): what the server does with one connection; `cut`: with those that take the answer of this number.
template <void (Server::*act)(size_t)>
napi_value onSlot(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.server != nullptr) (call.server->*act)(count(env, call.args[1]));
  return nullptr;
}

// address(door, slot) -> text
napi_value address(napi_env env, napi_callback_info info) {
  Call call(env, info);
  std::string text = call.server == nullptr ? "" : call.server->address(count(env, call.args[1]));
  napi_value result;
  napi_create_string_latin1(env, text.data(), text.size(), &result);
  return result;
}

// sweep(door, nowMs)
napi_value sweep(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.server != nullptr) call.server->sweep(number(env, call.args[1]));
  return nullptr;
}

// shut(door)
napi_value shut(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.server != nullptr) call.server->shut();
  return nullptr;
}

// destroy(door): nothing may be asked of the door any more.
napi_value destroyDoor(napi_env env, napi_callback_info info) {
  Call call(env, info);
  if (call.server == nullptr) return nullptr;
  void* data = nullptr;
  napi_get_value_external(env, call.args[0], &data);
  *static_cast<Door**>(data) = nullptr;
  destroy(call.door);
  return nullptr;
}

}  // namespace

NAPI_MODULE_INIT() {
  return give(env, exports, {{"open", open},
                             {"send", send},
                             {"stand", stand},
                             {"forget", forget},
                             {"cut", onSlot<&Server::cut>},
                             {"read", onSlot<&Server::read>},
                             {"hold", onSlot<&Server::hold>},
                             {"release", onSlot<&Server::release>},
                             {"drop", onSlot<&Server::drop>},
                             {"address", address},
                             {"sweep", sweep},
                             {"shut", shut},
                             {"destroy", destroyDoor}});
}
