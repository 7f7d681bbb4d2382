// The few calls of libuv that this addon makes. Node exports them and libuv promises not to change them within version 1; its
// header is not installed on every machine that has Node and a compiler. Handles are made as large as `uv_handle_size` says.
#pragma once

#include <cstddef>

extern "C" {
struct uv_loop_s;
typedef struct uv_loop_s uv_loop_t;
// The first member of every handle is free for its owner.
struct uv_handle_t {
  void* data;
};
struct uv_poll_t : uv_handle_t {};
struct uv_check_t : uv_handle_t {};
struct uv_idle_t : uv_handle_t {};
struct uv_timer_t : uv_handle_t {};

enum uv_handle_type { UV_CHECK = 2, UV_IDLE = 6, UV_POLL = 8, UV_TIMER = 13 };
enum uv_poll_event { UV_READABLE = 1, UV_WRITABLE = 2, UV_DISCONNECT = 4, UV_PRIORITIZED = 8 };

size_t uv_handle_size(uv_handle_type type);
int uv_poll_init(uv_loop_t* loop, uv_poll_t* handle, int fd);
int uv_poll_start(uv_poll_t* handle, int events, void (*act)(uv_poll_t* handle, int status, int events));
int uv_poll_stop(uv_poll_t* handle);
int uv_check_init(uv_loop_t* loop, uv_check_t* handle);
int uv_check_start(uv_check_t* handle, void (*act)(uv_check_t* handle));
int uv_idle_init(uv_loop_t* loop, uv_idle_t* handle);
int uv_idle_start(uv_idle_t* handle, void (*act)(uv_idle_t* handle));
int uv_idle_stop(uv_idle_t* handle);
int uv_timer_init(uv_loop_t* loop, uv_timer_t* handle);
int uv_timer_start(uv_timer_t* handle, void (*act)(uv_timer_t* handle), unsigned long long ms, unsigned long long everyMs);
int uv_timer_stop(uv_timer_t* handle);
void uv_unref(uv_handle_t* handle);
void uv_close(uv_handle_t* handle, void (*act)(uv_handle_t* handle));
}
