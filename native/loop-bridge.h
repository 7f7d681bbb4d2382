// What the addons with sockets (server, client) do alike. `Loop` has the handles on the event loop of one thread, and makes its
// turns. `Bridge` has the function of JavaScript that hears of them, and the memory that both sides see.
#pragma once

#include <errno.h>
#include <node_api.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "calls.h"
#include "libuv.h"

namespace loop_bridge {

// The handles of one owner. It must not be freed before `over` (see `destroy`) was called: the loop has its handles until then.
class Loop {
 public:
  // `turn` is called after the loop has looked at all sockets, each time.
  Loop(uv_loop_t* loop, std::function<void()> turn) : loop_(loop), turn_(std::move(turn)) {
    check_ = make<uv_check_t>(UV_CHECK);
    uv_check_init(loop, check_);
    check_->data = this;
    uv_check_start(check_, [](uv_check_t* handle) { static_cast<Loop*>(handle->data)->turn_(); });
    uv_unref(check_);
    idle_ = make<uv_idle_t>(UV_IDLE);
    uv_idle_init(loop, idle_);
  }

  // A timer whose data is `owner`.
  uv_timer_t* timer(void* owner) {
    uv_timer_t* made = make<uv_timer_t>(UV_TIMER);
    uv_timer_init(loop_, made);
    made->data = owner;
    return made;
  }

  // A handle that watches a socket. Null where the kernel watches no more of them (ENOSPC, ENOMEM): there is no handle then.
  uv_poll_t* watch(int fd) {
    uv_poll_t* poll = make<uv_poll_t>(UV_POLL);
    if (uv_poll_init(loop_, poll, fd) == 0) return poll;
    handles_ -= 1;
    free(poll);
    return nullptr;
  }

  void end(uv_handle_t* handle) {
    handle->data = this;
    uv_close(handle, [](uv_handle_t* closed) {
      Loop* loop = static_cast<Loop*>(closed->data);
      free(closed);
      loop->handles_ -= 1;
      if (loop->handles_ > 0 || !loop->over_) return;
      // It deletes the owner of the loop, and would end within itself if that still held it.
      std::function<void()> over = std::move(loop->over_);
      over();
    });
  }

  // Makes the loop turn once more, without waiting.
  void wake() {
    if (!isOver_) uv_idle_start(idle_, [](uv_idle_t*) {});
  }
  // The loop waits for events again.
  void stopWaking() { uv_idle_stop(idle_); }

  // Ends what turns it; the owner ends its own handles, too. `over` is called when none is left.
  void destroy(std::function<void()> over) {
    isOver_ = true;
    over_ = std::move(over);
    stopWaking();
    end(idle_);
    end(check_);
  }
  bool isOver() const { return isOver_; }

 private:
  template <typename Handle>
  Handle* make(uv_handle_type type) {
    handles_ += 1;
    return static_cast<Handle*>(calloc(1, uv_handle_size(type)));
  }

  uv_loop_t* loop_;
  std::function<void()> turn_, over_;
  uv_check_t* check_;
  uv_idle_t* idle_;
  size_t handles_ = 0;
  bool isOver_ = false;
};

// Null: it was let go of before.
inline void releaseAll(napi_env env, const std::vector<napi_ref>& all) {
  for (napi_ref each : all) {
    if (each != nullptr) napi_delete_reference(env, each);
  }
}

// A thing on the loop (`Part`, with `destroy(over)`) and the JavaScript that it talks to. `Memory` is what both sides see: the views
// that JavaScript has keep it, too, so that it is freed with the last of them and stays valid for this side.
template <typename Part, typename Memory>
struct Bridge {
  napi_env env = nullptr;
  Part* part = nullptr;
  napi_ref hear = nullptr;
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  napi_async_cleanup_hook_handle hook = nullptr;
  // What JavaScript must not free before.
  std::vector<napi_ref> kept;
  // Lets go of it. An owner that keeps more has one of its own.
  void release() { releaseAll(env, kept); }
};

// Ends the part; all memory is freed when the loop has closed its handles.
template <typename Owner>
void destroy(Owner* owner) {
  auto* ending = std::exchange(owner->part, nullptr);
  if (ending == nullptr) return;
  ending->destroy([owner, ending] {
    napi_handle_scope scope;
    napi_open_handle_scope(owner->env, &scope);
    napi_delete_reference(owner->env, owner->hear);
    owner->release();
    napi_close_handle_scope(owner->env, scope);
    napi_remove_async_cleanup_hook(owner->hook);
    delete owner;
    delete ending;
  });
}

// Binds a new owner to a thread and to the function that hears; its part is to be made for the loop that this returns.
template <typename Owner>
uv_loop_t* bind(napi_env env, napi_value hear, Owner* owner) {
  uv_loop_t* loop = nullptr;
  owner->env = env;
  napi_get_uv_event_loop(env, &loop);
  napi_create_reference(env, hear, 1, &owner->hear);
  // A thread that ends while the part is open must close all handles, or Node aborts.
  napi_add_async_cleanup_hook(
      env, [](napi_async_cleanup_hook_handle, void* data) { destroy(static_cast<Owner*>(data)); }, owner, &owner->hook);
  return loop;
}

// What JavaScript holds. `owner` is null once closed.
template <typename Owner>
struct Key {
  Owner* owner;
};

template <typename Owner>
napi_value keyOf(napi_env env, Owner* owner) {
  return Externals<Key<Owner>>::make(env, new Key<Owner>{owner}, [](napi_env, void* data, void*) {
    auto* key = static_cast<Key<Owner>*>(data);
    Externals<Key<Owner>>::forget(key);
    delete key;
  });
}

// The owner of the first argument; null once it is closed, or where that is none (`arguments` says which).
template <typename Owner>
Owner* ownerOf(Arguments& arguments) {
  auto* key = arguments.external<Key<Owner>>(0);
  return key == nullptr ? nullptr : key->owner;
}

// destroy(key): later calls with it do nothing.
template <typename Owner>
napi_value destroyCall(napi_env env, napi_callback_info info) {
  Arguments arguments(env, info, "destroy");
  auto* key = arguments.external<Key<Owner>>(0);
  if (key == nullptr || key->owner == nullptr) return nullptr;
  destroy(std::exchange(key->owner, nullptr));
  return nullptr;
}

// An ArrayBuffer over a part of the memory that both sides see; null where this Node has none of the kind.
template <typename Owner>
napi_value viewOf(Owner* owner, void* data, size_t bytes) {
  using Held = decltype(owner->memory);
  napi_value buffer = nullptr;
  auto* held = new Held(owner->memory);
  auto let = [](napi_env, void*, void* hint) { delete static_cast<Held*>(hint); };
  if (napi_create_external_arraybuffer(owner->env, data, bytes, let, held, &buffer) != napi_ok) delete held;
  return buffer;
}

// An array of what JavaScript gets of a new owner. Where a part is null the owner ends, and an exception waits.
template <typename Owner, size_t count>
napi_value listOf(Owner* owner, const napi_value (&parts)[count]) {
  napi_env env = owner->env;
  napi_value result;
  napi_create_array_with_length(env, count, &result);
  for (uint32_t at = 0; at < count; at += 1) {
    if (parts[at] == nullptr) {
      destroy(owner);
      return fail(env, "external array buffers are not supported", ENOTSUP);
    }
    napi_set_element(env, result, at, parts[at]);
  }
  return result;
}

}  // namespace loop_bridge
